#include "lockstep/common/cluster/cluster_role.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"

namespace lockstep {
namespace {

constexpr char kChiefJob[] = "chief";
constexpr char kMasterJob[] = "master";
constexpr char kWorkerJob[] = "worker";
constexpr char kPsJob[] = "ps";
constexpr char kEvaluatorJob[] = "evaluator";
constexpr char kCloud[] = "cloud";

bool Has(const ClusterSpec& cluster, absl::string_view job) { return cluster.NumTasks(job).ok(); }

absl::Status CheckType(const std::string& type) {
  for (const char* known : {kChiefJob, kMasterJob, kWorkerJob, kPsJob, kEvaluatorJob}) {
    if (type == known) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the task's type is \"", type, "\", must be chief, master, worker, ps or evaluator"));
}

// Returns the chief's job and index.
absl::StatusOr<ClusterTask> FindChief(const TfConfig& config) {
  const ClusterSpec& cluster = config.cluster;
  if (Has(cluster, kChiefJob) && Has(cluster, kMasterJob)) {
    return absl::InvalidArgumentError("the cluster has both a chief and a master, which is the same; drop one");
  }
  std::string job = kWorkerJob;
  if (Has(cluster, kChiefJob)) {
    job = kChiefJob;
  } else if (Has(cluster, kMasterJob) && (config.environment.value_or(kCloud) == kCloud || !Has(cluster, kWorkerJob))) {
    job = kMasterJob;
  } else if (!Has(cluster, kWorkerJob)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cluster has neither a chief nor a master nor a worker: it has ", cluster.ToString()));
  }
  ASSIGN_OR_RETURN(const std::vector<int> indices, cluster.TaskIndices(job));
  if (job != kWorkerJob && indices.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cluster has ", indices.size(), " tasks of the job \"", job, "\", must have one"));
  }
  ASSIGN_OR_RETURN(std::string address, cluster.TaskAddress(job, indices.front()));
  return ClusterTask{job, indices.front(), std::move(address)};
}

Role RoleOf(const std::string& type) {
  if (type == kPsJob) return Role::kParameterServer;
  if (type == kEvaluatorJob) return Role::kEvaluator;
  return type == kWorkerJob ? Role::kWorker : Role::kChief;
}

// Returns the role of a process that has no cluster.
absl::StatusOr<ClusterRole> RoleAlone(const TfConfig& config) {
  ClusterRole role;
  role.index = config.task_index.value_or(0);
  if (config.task_type) {
    RETURN_IF_ERROR(CheckType(*config.task_type));
    role.job = *config.task_type;
    role.role = RoleOf(role.job);
  } else if (role.index > 0) {
    role.role = Role::kWorker;
  }
  return role;
}

bool IsOfThisMachine(absl::string_view host) {
  return host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127.");
}

}  // namespace

int NumTasks(const ClusterSpec& cluster) {
  int count = 0;
  for (const std::string& job : cluster.jobs()) count += cluster.NumTasks(job).value_or(0);
  return count;
}

absl::StatusOr<ClusterRole> ResolveRole(const TfConfig& config) {
  if (config.cluster.empty()) return RoleAlone(config);
  ClusterRole role;
  const bool outside = config.task_type == std::string(kEvaluatorJob) && !Has(config.cluster, kEvaluatorJob);
  if (outside) {
    role.job = kEvaluatorJob;
    role.index = config.task_index.value_or(0);
  } else {
    const bool alone = NumTasks(config.cluster) == 1;
    if (!config.task_type && !alone) {
      return absl::InvalidArgumentError(
          absl::StrCat("the task has no type, and the cluster several tasks: ", config.cluster.ToString()));
    }
    const absl::optional<int> index = alone ? config.task_index : config.task_index.value_or(0);
    ASSIGN_OR_RETURN(const ClusterTask task, ResolveTask(config.cluster, config.task_type, index));
    role.job = task.job;
    role.index = task.index;
    role.address = task.address;
  }
  RETURN_IF_ERROR(CheckType(role.job));
  ASSIGN_OR_RETURN(const ClusterTask chief, FindChief(config));
  role.role = RoleOf(role.job);
  if (role.role == Role::kChief || role.role == Role::kWorker) {
    role.role = role.job == chief.job && role.index == chief.index ? Role::kChief : Role::kWorker;
  }
  if (NumTasks(config.cluster) == 1 && role.role == Role::kChief) {
    role.address.clear();  // No other process can connect.
  } else {
    role.chief_address = chief.address;
  }
  return role;
}

std::string MasterOf(absl::string_view address) {
  const bool complete = address.empty() || IsUnixAddress(address) || absl::StrContains(address, "://") ||
                        absl::StartsWith(address, "file:");
  return complete ? std::string(address) : absl::StrCat("grpc://", address);
}

std::string ListenAddressOf(absl::string_view address) {
  absl::ConsumePrefix(&address, "grpc://");
  if (address.empty() || IsUnixAddress(address)) return std::string(address);
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return std::string(address);
  const absl::string_view host = address.substr(0, colon), port = address.substr(colon + 1);
  if (IsOfThisMachine(host)) return std::string(address);
  return absl::StrCat(absl::StartsWith(host, "[") ? "[::]:" : "0.0.0.0:", port);
}

}  // namespace lockstep
