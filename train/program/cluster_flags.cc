#include "lockstep/train/program/cluster_flags.h"

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/server/rpc/admission/listen_address.h"

namespace lockstep::train {
namespace {

absl::Status Wrong(absl::string_view flag, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", why));
}

absl::StatusOr<ClusterSpec> ClusterOf(const ClusterFlags& flags) {
  std::map<std::string, std::vector<std::string>> jobs;
  if (!flags.ps_hosts.value_or("").empty()) jobs["ps"] = absl::StrSplit(*flags.ps_hosts, ',');
  if (!flags.worker_hosts.value_or("").empty()) jobs["worker"] = absl::StrSplit(*flags.worker_hosts, ',');
  auto cluster = ClusterSpec::FromLists(jobs);
  if (cluster.ok()) return cluster;
  return absl::InvalidArgumentError(absl::StrCat("--ps_hosts and --worker_hosts: ", cluster.status().message()));
}

absl::Status CheckAddresses(const ClusterFlags& flags, const ProcessRole& process) {
  const Role role = process.task.role;
  const bool is_chief = role == Role::kChief;
  if (is_chief && !flags.master.empty() && flags.IsFlag("master")) {
    return Wrong("master", "is where the chief is, and this process is the chief; --listen says where workers connect");
  }
  if (!is_chief && !flags.listen.empty() && flags.IsFlag("listen")) return Wrong("listen", "is for the chief");
  if ((role == Role::kWorker || role == Role::kParameterServer) && process.master.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a ", role == Role::kWorker ? "worker" : "parameter server",
        " needs --master, the address of its chief, such as grpc://127.0.0.1:2222, or a cluster that names "
        "it: --worker_hosts, or TF_CONFIG"));
  }
  if (role == Role::kEvaluator && process.logdir.empty()) {
    return absl::InvalidArgumentError(
        "an evaluator needs --logdir, or TF_CONFIG's model_dir: where the checkpoints are");
  }
  if (!process.master.empty()) {
    const absl::Status master = ParseMasterAddress(process.master).status();
    if (!master.ok()) return absl::InvalidArgumentError(absl::StrCat("the chief's address: ", master.message()));
  }
  if (!process.listen.empty()) {
    const absl::Status listen = CheckListenAddresses(process.listen);
    if (!listen.ok()) return absl::InvalidArgumentError(absl::StrCat("--listen: ", listen.message()));
  }
  return absl::OkStatus();
}

}  // namespace

void ClusterFlags::Declare(CommandLine* command_line) {
  this->command_line = command_line;
  command_line->AddFlag("job_name", "chief|worker|ps|evaluator",
                        "what this process is; when absent what TF_CONFIG says, a worker with --master, else the chief",
                        &job_name);
  command_line->AddFlag("task_index", "K", "which of the job's tasks; 0 when absent", &task_index);
  command_line->AddFlag("ps_hosts", "HOST:PORT,...", "the cluster's tasks of the job ps, which hold nothing yet",
                        &ps_hosts);
  command_line->AddFlag("worker_hosts", "HOST:PORT,...", "the cluster's workers, of which the first one is the chief",
                        &worker_hosts);
  command_line->AddFlag("listen", "HOST:PORT", "chief: where workers connect; port 0 takes any", &listen);
  command_line->AddFlag("master", "grpc://HOST:PORT", "where the chief is, for all others", &master);
  command_line->AddFlag("tls_dir", "DIR",
                        "speak TLS on all addresses but unix sockets, with the files ca.crt, tls.crt and tls.key in "
                        "DIR; lockstep certs makes them",
                        &tls_dir);
  command_line->AddFlag("insecure", "",
                        "chief: listen in plain text although other machines can reach the address: whoever reaches it "
                        "is trusted with the run",
                        &insecure);
  command_line->AddFlag(
      "logdir", "DIR",
      "checkpoints and events are here; none: nothing is kept. A worker's: the chief's, if it is there: it says "
      "that the run is over when the chief has gone",
      &logdir);
}

absl::StatusOr<ProcessRole> ClusterFlags::Resolve(TfConfig environment) const {
  if (task_index && (*task_index < 0 || *task_index > std::numeric_limits<int>::max())) {
    return Wrong("task_index", absl::StrCat("is ", *task_index, ", must be 0 or more"));
  }
  if (ps_hosts || worker_hosts) {
    ASSIGN_OR_RETURN(environment.cluster, ClusterOf(*this));
  }
  if (job_name && job_name != environment.task_type) {
    environment.task_type = job_name;
    environment.task_index.reset();
  } else if (environment.cluster.empty() && !environment.task_type && !master.empty()) {
    environment.task_type = "worker";
  }
  if (task_index) environment.task_index = static_cast<int>(*task_index);
  if (!logdir.empty()) environment.model_dir = logdir;
  ProcessRole process;
  ASSIGN_OR_RETURN(process.task, ResolveRole(environment));
  const bool is_chief = process.task.role == Role::kChief;
  if (!is_chief) process.master = master.empty() ? MasterOf(process.task.chief_address) : master;
  if (is_chief) process.listen = listen.empty() ? ListenAddressOf(process.task.address) : listen;
  process.logdir = environment.model_dir;
  process.environment = std::move(environment);
  RETURN_IF_ERROR(CheckAddresses(*this, process));
  return process;
}

}  // namespace lockstep::train
