#ifndef LOCKSTEP_TRAIN_PROGRAM_CLUSTER_FLAGS_H_
#define LOCKSTEP_TRAIN_PROGRAM_CLUSTER_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/cluster/cluster_role.h"
#include "lockstep/common/cluster/tf_config.h"
#include "lockstep/common/flags/command_line.h"

namespace lockstep::train {

// What a process is, and where it finds the others. A value.
struct ProcessRole {
  ClusterRole task;
  // What TF_CONFIG says, with the flags in place of what they say otherwise.
  TfConfig environment;
  // Where the chief is; empty for the chief.
  std::string master;
  // The chief's; empty: it is alone.
  std::string listen;
  std::string logdir;
};

// --job_name, --task_index, --ps_hosts, --worker_hosts, --listen, --master, --tls_dir and --logdir: how a program
// learns what it is. A flag counts before its LOCKSTEP_ variable, and that before TF_CONFIG. All processes of a cluster
// may have the same variables: one that is for others says nothing, where such a flag is an error.
struct ClusterFlags {
  absl::optional<std::string> job_name;
  absl::optional<int64_t> task_index;
  // Addresses, separated by commas. One of the two given: the cluster is what they say, and not TF_CONFIG's.
  absl::optional<std::string> ps_hosts;
  absl::optional<std::string> worker_hosts;
  std::string listen;
  std::string master;
  std::string tls_dir;
  bool insecure = false;
  std::string logdir;

  // This object must outlive the parsing, and `command_line` this object.
  void Declare(CommandLine* command_line);

  // Errors: those of ResolveRole; InvalidArgument names flags that contradict each other or what is missing: a worker's
  // and a parameter server's master, an evaluator's logdir.
  absl::StatusOr<ProcessRole> Resolve(TfConfig environment) const;

  // False for what the environment said. Without Declare everything is a flag.
  bool IsFlag(const std::string& name) const { return command_line == nullptr || command_line->IsGiven(name); }
  const CommandLine* command_line = nullptr;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_PROGRAM_CLUSTER_FLAGS_H_
