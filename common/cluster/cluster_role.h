#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_ROLE_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_ROLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/cluster/tf_config.h"

namespace lockstep {

enum class Role {
  // Owns the run. Also computes unless configured otherwise.
  kChief,
  kWorker,
  // A task of the job "ps". It only waits for the end of the run, because the chief holds all variables.
  kParameterServer,
  // Evaluates checkpoints. Does not take part in the training, and need not be in the cluster.
  kEvaluator,
};

// The role of a process in its cluster. A value type.
struct ClusterRole {
  Role role = Role::kChief;
  // The process's job in the cluster; empty if neither a cluster nor a task type is given.
  std::string job;
  int index = 0;
  // The addresses of the process and of the chief. Each is empty if there is none, or if the process is the only task
  // of its cluster.
  std::string address;
  std::string chief_address;
};

// Determines the role of a process. The chief is the task of the job "chief". Without such a job, the chief is the task
// of the job "master", unless the cluster has workers and `environment` is given and is not "cloud". Otherwise the
// chief is the first task of the job "worker". A master that is not the chief is a worker. Without a cluster, the task
// type determines the role; without a type as well, the process is a worker if its index is above 0, and otherwise the
// chief. A process whose cluster has a single task needs no type. Errors: InvalidArgument for a type other than chief,
// master, worker, ps and evaluator, for a type or index that the cluster lacks, for a missing type in a cluster of
// several tasks, and for several chiefs or none.
absl::StatusOr<ClusterRole> ResolveRole(const TfConfig& config);

// Returns the number of tasks in all jobs of a cluster.
int NumTasks(const ClusterSpec& cluster);

// Returns the master string for a task's address, "grpc://host:port" or "unix:/path"; "" for "".
std::string MasterOf(absl::string_view address);

// Returns the address on which a task listens. This is all interfaces at the address's port, because the host may be a
// name that only other machines resolve to this one. Addresses local to the machine (localhost, a unix socket) are
// returned unchanged.
std::string ListenAddressOf(absl::string_view address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_ROLE_H_
