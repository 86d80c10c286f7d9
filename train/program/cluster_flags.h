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

// The role of a process, and the chief's address. A value type.
struct ProcessRole {
  ClusterRole task;
  // The contents of TF_CONFIG, overridden by the flags.
  TfConfig environment;
  // The chief's address. Empty for the chief.
  std::string master;
  // The addresses at which the chief listens. If empty, the chief runs without other processes.
  std::string listen;
  std::string logdir;
};

// The flags --job_name, --task_index, --ps_hosts, --worker_hosts, --listen, --master, --tls_dir and --logdir, which
// define a program's role. A flag takes precedence over its LOCKSTEP_ variable, and the variable over TF_CONFIG. All
// processes of a cluster may share the same variables: a variable meant for another role is ignored, while a flag meant
// for another role is an error.
struct ClusterFlags {
  absl::optional<std::string> job_name;
  absl::optional<int64_t> task_index;
  // Addresses, separated by commas. If ps_hosts or worker_hosts is given, they define the cluster instead of TF_CONFIG.
  absl::optional<std::string> ps_hosts;
  absl::optional<std::string> worker_hosts;
  std::string listen;
  std::string master;
  std::string tls_dir;
  bool insecure = false;
  std::string logdir;

  // Declares the flags. `command_line` must outlive this object, which must exist until the flags have been parsed.
  void Declare(CommandLine* command_line);

  // Returns the role. Errors: those of ResolveRole; InvalidArgument naming flags that contradict each other or are
  // missing (the master of a worker or a parameter server, the logdir of an evaluator).
  absl::StatusOr<ProcessRole> Resolve(TfConfig environment) const;

  // Returns true if a flag set the value, and false if the environment did. Without Declare, every value counts as set
  // by a flag.
  bool IsFlag(const std::string& name) const { return command_line == nullptr || command_line->IsGiven(name); }
  const CommandLine* command_line = nullptr;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_PROGRAM_CLUSTER_FLAGS_H_
