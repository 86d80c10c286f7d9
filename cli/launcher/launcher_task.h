#ifndef LOCKSTEP_CLI_LAUNCHER_LAUNCHER_TASK_H_
#define LOCKSTEP_CLI_LAUNCHER_LAUNCHER_TASK_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/cluster/cluster_role.h"

namespace lockstep {

// A process's environment variables, by name.
using EnvironmentMap = std::map<std::string, std::string>;

// Programs that start the tasks of a cluster and describe the cluster in variables, in order of precedence. kTorch is
// torchrun and everything that sets its variables: Kubeflow's PyTorchJob and TrainJob, SkyPilot, AzureML.
enum class TaskLauncher { kTfConfig, kSlurm, kKubernetes, kTorch, kMpi };

// All launchers, in order of precedence.
const std::vector<TaskLauncher>& TaskLaunchers();
// Returns "tf_config", "slurm", "kubernetes", "torch" or "mpi".
std::string LauncherName(TaskLauncher launcher);

// A value and the variables that it comes from, such as "SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=4".
struct SourcedText {
  std::string text;
  std::string source;
};

// The statements of one launcher about this process. A value type.
struct LauncherTask {
  TaskLauncher launcher = TaskLauncher::kTfConfig;

  // False if the variables give only an address or a logdir. The next five fields are valid only if this is true.
  bool has_role = false;
  // All launchers except TF_CONFIG start equal tasks, of which task 0 is the chief and also computes.
  Role role = Role::kChief;
  // True for a chief that also computes.
  bool computes = false;
  // The task's index: within its job in TF_CONFIG, otherwise within the cluster.
  int index = 0;
  // The number of tasks in the cluster; 0 if unknown.
  int tasks = 0;
  std::string source;

  // The chief's address, "host:port". Absent if unknown.
  absl::optional<SourcedText> chief;
  // The address to use if no launcher states the chief's address. This launcher names the chief's host or has a naming
  // rule for it, and the port is a default.
  absl::optional<SourcedText> derived_chief;
  // The host at which other tasks reach this one.
  absl::optional<SourcedText> host;
  // A name unique among the run's tasks. If absent, "worker-<index>" is used, which is unique.
  absl::optional<SourcedText> name;
  absl::optional<SourcedText> logdir;
  // The number of worker processes for each task.
  absl::optional<SourcedText> processes;
};

// Returns what one launcher says, or nullopt if its variables are absent. Returns InvalidArgument naming a variable
// that is malformed, or that is missing although others are set.
absl::StatusOr<absl::optional<LauncherTask>> ReadLauncher(TaskLauncher launcher, const EnvironmentMap& environment);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_LAUNCHER_TASK_H_
