#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_ROLE_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_ROLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/cluster/tf_config.h"

namespace lockstep {

enum class Role {
  // Owns the run. It computes as well, unless it is told not to.
  kChief,
  kWorker,
  // A task of the job "ps". The chief holds all variables: it has nothing to do but to end with the run.
  kParameterServer,
  // Evaluates checkpoints; it is not a part of the training, and need not be in the cluster.
  kEvaluator,
};

// What a process is in its cluster. A value.
struct ClusterRole {
  Role role = Role::kChief;
  // What the cluster calls it; empty without a cluster's word.
  std::string job;
  int index = 0;
  // Its own address, and that of the chief; empty where it has none, and without a cluster of several tasks.
  std::string address;
  std::string chief_address;
};

// The chief is the task of the job "chief"; else of the job "master", unless `environment` is given and is not "cloud":
// then, and where the cluster names neither, it is the first task of the job "worker". A master that is not chief is a
// worker. Without a cluster a process is what its task type says, and without that the chief, or with an index above 0
// a worker. A process whose cluster has a single task needs no type. Errors: InvalidArgument for a type that is none of
// chief, master, worker, ps and evaluator, a type or an index that the cluster does not have, no type where there are
// several tasks, several chiefs, or none.
absl::StatusOr<ClusterRole> ResolveRole(const TfConfig& config);

// How many tasks a cluster has, of all jobs.
int NumTasks(const ClusterSpec& cluster);

// The master string that leads to a task: "grpc://host:port", "unix:/path". "" for "".
std::string MasterOf(absl::string_view address);

// Where the task of this address listens: on all interfaces at the address's port, for its host may be a name that
// leads here only from elsewhere; but an address of this machine alone, localhost or a unix socket, as it is.
std::string ListenAddressOf(absl::string_view address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_ROLE_H_
