#include "lockstep/cli/launcher/launcher_task.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lockstep/cli/launcher/host_list.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/tf_config.h"

namespace lockstep {
namespace {

using MaybeTask = absl::StatusOr<absl::optional<LauncherTask>>;

constexpr int kMaxTasks = 1000000;
constexpr int kDefaultPort = 2222;
// torchrun's default.
constexpr int kTorchPort = 29500;
// A Slurm job's chief listens on kSlurmPort + job id % kSlurmPorts, so that two jobs on one node seldom collide.
constexpr int kSlurmPort = 15000;
constexpr int kSlurmPorts = 10000;

// The environment variables that a launcher sets.
class Variables {
 public:
  explicit Variables(const EnvironmentMap& environment) : environment_(environment) {}

  // Returns the variable's value, or "" if the variable is absent.
  std::string Get(const std::string& name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? "" : found->second;
  }
  bool Has(const std::string& name) const { return !Get(name).empty(); }
  // Returns the first name that is set, or the last name if none is set.
  std::string FirstSet(const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      if (Has(name)) return name;
    }
    return names.back();
  }
  // Returns the number in [0, limit) that a variable holds. The variable must be set.
  absl::StatusOr<int> Number(const std::string& name, int limit) const {
    int number = 0;
    if (absl::SimpleAtoi(Get(name), &number) && number >= 0 && number < limit) return number;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is \"", Get(name), "\", must be a whole number in [0, ", limit, ")"));
  }
  // Returns text such as "A=1, B=2", without the variables that are absent.
  std::string Source(const std::vector<std::string>& names) const {
    std::vector<std::string> parts;
    for (const std::string& name : names) {
      if (Has(name)) parts.push_back(absl::StrCat(name, "=", Get(name)));
    }
    return absl::StrJoin(parts, ", ");
  }

 private:
  const EnvironmentMap& environment_;
};

// Returns "host:port", with an IPv6 host in brackets.
std::string HostPort(const std::string& host, int port) {
  const bool bare_ipv6 = host.find(':') != std::string::npos && host[0] != '[';
  return bare_ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

// Fills in the role of one of several equal tasks. The number of tasks is unknown if `count_name` is "" or the variable
// is absent.
absl::Status ReadRank(const Variables& variables, const std::string& index_name, const std::string& count_name,
                      LauncherTask* task) {
  ASSIGN_OR_RETURN(task->index, variables.Number(index_name, kMaxTasks));
  if (variables.Has(count_name)) {
    ASSIGN_OR_RETURN(task->tasks, variables.Number(count_name, kMaxTasks + 1));
    if (task->index >= task->tasks) {
      return absl::InvalidArgumentError(
          absl::StrCat(variables.Source({index_name, count_name}), ": the index must be below the number of tasks"));
    }
  }
  task->has_role = true;
  task->role = task->index == 0 ? Role::kChief : Role::kWorker;
  task->computes = task->index == 0;
  task->source = variables.Source({index_name, count_name});
  return absl::OkStatus();
}

MaybeTask ReadTfConfig(const Variables& variables) {
  if (!variables.Has(kTfConfigVariable)) return {absl::nullopt};
  ASSIGN_OR_RETURN(const TfConfig config, ParseTfConfig(variables.Get(kTfConfigVariable)));
  LauncherTask task;
  if (!config.model_dir.empty()) task.logdir = SourcedText{config.model_dir, "TF_CONFIG's model_dir"};
  if (config.cluster.empty() && !config.task_type && !config.task_index) return {task};
  const absl::StatusOr<ClusterRole> role = ResolveRole(config);
  if (!role.ok()) return absl::InvalidArgumentError(absl::StrCat(kTfConfigVariable, ": ", role.status().message()));
  task.has_role = true;
  task.role = role->role;
  task.index = role->index;
  task.tasks = NumTasks(config.cluster);
  // A chief next to workers has a job of its own and does not compute. A first worker that acts as the chief also
  // computes.
  task.computes = role->role == Role::kChief && (role->job == "worker" || !config.cluster.NumTasks("worker").ok());
  task.source = absl::StrCat("TF_CONFIG's task ", role->job.empty() ? "" : absl::StrCat(role->job, " "), role->index);
  if (!role->chief_address.empty()) task.chief = SourcedText{role->chief_address, "TF_CONFIG's cluster"};
  return {task};
}

MaybeTask ReadSlurm(const Variables& variables) {
  if (!variables.Has("SLURM_PROCID") || !variables.Has("SLURM_JOB_ID")) return {absl::nullopt};
  const std::string count = variables.FirstSet({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  LauncherTask task;
  RETURN_IF_ERROR(ReadRank(variables, "SLURM_PROCID", count, &task));
  if (task.tasks != 1 && !variables.Has("SLURM_STEP_NODELIST")) {
    return absl::InvalidArgumentError(absl::StrCat(variables.Source({"SLURM_JOB_ID", count}),
                                                   ", but SLURM_STEP_NODELIST is absent: this is the job's batch "
                                                   "script; srun starts its tasks: srun lockstep task"));
  }
  ASSIGN_OR_RETURN(const int job, variables.Number("SLURM_JOB_ID", std::numeric_limits<int>::max()));
  ASSIGN_OR_RETURN(const std::vector<std::string> hosts, ParseHostList(variables.Get("SLURM_STEP_NODELIST")));
  if (!hosts.empty()) {
    task.derived_chief = SourcedText{HostPort(hosts[0], kSlurmPort + job % kSlurmPorts),
                                     absl::StrCat("first of ", variables.Source({"SLURM_STEP_NODELIST"}), ", port ",
                                                  kSlurmPort, " + SLURM_JOB_ID % ", kSlurmPorts)};
  }
  if (variables.Has("SLURMD_NODENAME")) {
    task.host = SourcedText{variables.Get("SLURMD_NODENAME"), "SLURMD_NODENAME"};
  }
  if (variables.Has("SLURM_ARRAY_TASK_ID")) {
    const std::string suffix = task.tasks == 1 ? "" : absl::StrCat(".", task.index);
    task.name = SourcedText{absl::StrCat("worker-", variables.Get("SLURM_ARRAY_TASK_ID"), suffix),
                            variables.Source({"SLURM_ARRAY_TASK_ID", task.tasks == 1 ? "" : "SLURM_PROCID"})};
  }
  return {task};
}

MaybeTask ReadKubernetes(const Variables& variables) {
  if (!variables.Has("JOB_COMPLETION_INDEX")) return {absl::nullopt};
  LauncherTask task;
  RETURN_IF_ERROR(ReadRank(variables, "JOB_COMPLETION_INDEX", "", &task));
  // The host name of an Indexed Job's pod is "<job>-<index>"; a headless service with the job's name resolves it.
  const std::string hostname = variables.Get("HOSTNAME");
  absl::string_view job = hostname;
  if (absl::ConsumeSuffix(&job, absl::StrCat("-", variables.Get("JOB_COMPLETION_INDEX"))) && !job.empty()) {
    const std::string rule = absl::StrCat(variables.Source({"HOSTNAME"}), ", service ", job);
    task.derived_chief =
        SourcedText{HostPort(absl::StrCat(job, "-0.", job), kDefaultPort), absl::StrCat(rule, ", port ", kDefaultPort)};
    task.host = SourcedText{absl::StrCat(hostname, ".", job), rule};
  }
  return {task};
}

// Returns the chief's address, which is derived from that of the torch processes' store. The variables `host` and
// `port` give the store's address.
absl::StatusOr<SourcedText> TorchChief(const Variables& variables, const std::string& host, const std::string& port) {
  SourcedText chief;
  int number = kTorchPort;
  if (variables.Has(port)) {
    ASSIGN_OR_RETURN(number, variables.Number(port, 65536));
  }
  chief.source = variables.Source({host, port});
  // torchrun itself listens on this port, so the chief takes the next one.
  if (variables.Get("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    ++number;
    absl::StrAppend(&chief.source, " + 1, next to torchrun's store");
  }
  chief.text = HostPort(variables.Get(host), number);
  return chief;
}

MaybeTask ReadTorch(const Variables& variables) {
  LauncherTask task;
  const bool ranked = variables.Has("RANK") && (variables.Has("WORLD_SIZE") || variables.Has("MASTER_ADDR"));
  if (ranked) {
    RETURN_IF_ERROR(ReadRank(variables, "RANK", "WORLD_SIZE", &task));
  } else if (variables.Has("PET_NODE_RANK")) {
    // An elastic range of nodes, such as "1:4", is not a number of tasks.
    const bool elastic = variables.Get("PET_NNODES").find(':') != std::string::npos;
    RETURN_IF_ERROR(ReadRank(variables, "PET_NODE_RANK", elastic ? "" : "PET_NNODES", &task));
    int processes = 0;
    if (absl::SimpleAtoi(variables.Get("PET_NPROC_PER_NODE"), &processes) && processes > 0) {
      task.processes = SourcedText{absl::StrCat(processes), variables.Source({"PET_NPROC_PER_NODE"})};
    }
  }
  if (variables.Has("MASTER_ADDR")) {
    ASSIGN_OR_RETURN(task.chief, TorchChief(variables, "MASTER_ADDR", "MASTER_PORT"));
  } else if (variables.Has("PET_MASTER_ADDR")) {
    ASSIGN_OR_RETURN(task.chief, TorchChief(variables, "PET_MASTER_ADDR", "PET_MASTER_PORT"));
  }
  if (!task.has_role && !task.chief) return {absl::nullopt};
  return {task};
}

MaybeTask ReadMpi(const Variables& variables) {
  if (!variables.Has("OMPI_COMM_WORLD_RANK")) return {absl::nullopt};
  LauncherTask task;
  RETURN_IF_ERROR(ReadRank(variables, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &task));
  // Open MPI does not name the host of rank 0, so the address is known only if all tasks are on this host.
  if (task.tasks > 1 && variables.Get("OMPI_COMM_WORLD_LOCAL_SIZE") == absl::StrCat(task.tasks)) {
    task.derived_chief =
        SourcedText{HostPort("127.0.0.1", kDefaultPort),
                    absl::StrCat(variables.Source({"OMPI_COMM_WORLD_LOCAL_SIZE"}), ", port ", kDefaultPort)};
  }
  return {task};
}

}  // namespace

const std::vector<TaskLauncher>& TaskLaunchers() {
  static const auto& launchers =
      *new std::vector<TaskLauncher>{TaskLauncher::kTfConfig, TaskLauncher::kSlurm, TaskLauncher::kKubernetes,
                                     TaskLauncher::kTorch, TaskLauncher::kMpi};
  return launchers;
}

std::string LauncherName(TaskLauncher launcher) {
  switch (launcher) {
    case TaskLauncher::kTfConfig:
      return "tf_config";
    case TaskLauncher::kSlurm:
      return "slurm";
    case TaskLauncher::kKubernetes:
      return "kubernetes";
    case TaskLauncher::kTorch:
      return "torch";
    case TaskLauncher::kMpi:
      return "mpi";
  }
  return "";
}

MaybeTask ReadLauncher(TaskLauncher launcher, const EnvironmentMap& environment) {
  constexpr MaybeTask (*kReaders[])(const Variables&) = {ReadTfConfig, ReadSlurm, ReadKubernetes, ReadTorch, ReadMpi};
  ASSIGN_OR_RETURN(absl::optional<LauncherTask> task, kReaders[static_cast<int>(launcher)](Variables(environment)));
  if (task) task->launcher = launcher;
  return task;
}

}  // namespace lockstep
