#ifndef LOCKSTEP_CLI_LAUNCHER_RESOLVED_TASK_H_
#define LOCKSTEP_CLI_LAUNCHER_RESOLVED_TASK_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/cli/launcher/launcher_task.h"
#include "lockstep/common/cluster/cluster_role.h"

namespace lockstep {

// A name, a value and its source, for people to read: "chief", "grpc://n1:15042", "first of SLURM_STEP_NODELIST=n[1-2],
// ...".
struct TaskValue {
  std::string name;
  std::string value;
  std::string source;
};

// A process's role in its cluster, with everything that it needs for that role. A value type.
struct ResolvedTask {
  Role role = Role::kChief;
  // The number of worker processes to run, for a worker and for a chief that also computes. 0 for a chief that does
  // not.
  int workers = 1;
  // The master string of the chief (common/cluster/master_address.h). Empty for a chief to which no other task
  // connects.
  std::string master;
  // The address on which a chief listens, the host that it writes to address_file, and the file. The last two may be
  // empty.
  std::string listen;
  std::string advertise;
  std::string address_file;
  // A worker's name, or the prefix of the names if there are several workers. Empty if unknown.
  std::string name;
  // Empty if unknown.
  std::string logdir;
  // The values above that matter for the role, each with its source.
  std::vector<TaskValue> values;
};

// The flags that determine a task, in the order in which the help lists them: role, launcher, index, tasks, master,
// listen, advertise, name, workers, logdir.
const std::vector<std::string>& TaskFlagNames();

// Resolves the task of a process. A value comes from `flags`, which holds only the flags that were given, by name; else
// from the variable LOCKSTEP_<FLAG>; else from the launchers in order. If --launcher names one launcher, the others are
// not read. Without a launcher, a process with a master is a worker, and any other process is a chief that computes. A
// launcher that counts a single task does not contradict one that counts several. A chief computes if its cluster has
// no worker, or if it is one of several equal tasks. Reads nothing but its arguments. Returns InvalidArgument naming
// the flag or variable that is malformed or missing, or two sources that contradict each other, and how to proceed.
absl::StatusOr<ResolvedTask> ResolveTaskOf(const std::map<std::string, std::string>& flags,
                                           const EnvironmentMap& environment);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_RESOLVED_TASK_H_
