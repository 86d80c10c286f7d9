#include "lockstep/common/cluster/cluster_spec.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr int kMaxTasks = 1000000;

absl::Status CheckTasks(const std::string& job, const ClusterSpec::Tasks& tasks) {
  if (job.empty()) return absl::InvalidArgumentError("the cluster has a job without a name");
  if (tasks.empty()) return absl::InvalidArgumentError(absl::StrCat("job \"", job, "\" has no tasks"));
  for (const auto& [index, address] : tasks) {
    if (index < 0 || index >= kMaxTasks) {
      return absl::InvalidArgumentError(
          absl::StrCat("job \"", job, "\" has a task ", index, ", must be in [0, ", kMaxTasks, ")"));
    }
    if (address.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("task ", index, " of job \"", job, "\" has no address"));
    }
  }
  return absl::OkStatus();
}

// Returns true if the indices are 0, 1, 2, ...
bool IsDense(const ClusterSpec::Tasks& tasks) { return tasks.rbegin()->first + 1 == static_cast<int>(tasks.size()); }

}  // namespace

absl::StatusOr<ClusterSpec> ClusterSpec::Create(std::map<std::string, Tasks> jobs) {
  for (const auto& [job, tasks] : jobs) RETURN_IF_ERROR(CheckTasks(job, tasks));
  ClusterSpec cluster;
  cluster.jobs_ = std::move(jobs);
  return cluster;
}

absl::StatusOr<ClusterSpec> ClusterSpec::FromLists(const std::map<std::string, std::vector<std::string>>& jobs) {
  std::map<std::string, Tasks> indexed;
  for (const auto& [job, addresses] : jobs) {
    Tasks& tasks = indexed[job];
    for (const std::string& address : addresses) tasks.emplace(static_cast<int>(tasks.size()), address);
  }
  return Create(std::move(indexed));
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

absl::StatusOr<const ClusterSpec::Tasks*> ClusterSpec::Find(absl::string_view job) const {
  const auto it = jobs_.find(std::string(job));
  if (it != jobs_.end()) return &it->second;
  return absl::InvalidArgumentError(absl::StrCat("job \"", job, "\" is not in the cluster, which has ",
                                                 empty() ? "no jobs" : absl::StrJoin(jobs(), ", ")));
}

absl::StatusOr<int> ClusterSpec::NumTasks(absl::string_view job) const {
  ASSIGN_OR_RETURN(const Tasks* tasks, Find(job));
  return static_cast<int>(tasks->size());
}

absl::StatusOr<std::vector<int>> ClusterSpec::TaskIndices(absl::string_view job) const {
  ASSIGN_OR_RETURN(const Tasks* tasks, Find(job));
  std::vector<int> indices;
  for (const auto& [index, address] : *tasks) indices.push_back(index);
  return indices;
}

absl::StatusOr<std::vector<absl::optional<std::string>>> ClusterSpec::TaskList(absl::string_view job) const {
  ASSIGN_OR_RETURN(const Tasks* tasks, Find(job));
  std::vector<absl::optional<std::string>> list(tasks->rbegin()->first + 1);
  for (const auto& [index, address] : *tasks) list[index] = address;
  return list;
}

absl::StatusOr<std::string> ClusterSpec::TaskAddress(absl::string_view job, int index) const {
  ASSIGN_OR_RETURN(const Tasks* tasks, Find(job));
  const auto it = tasks->find(index);
  if (it != tasks->end()) return it->second;
  ASSIGN_OR_RETURN(const std::vector<int> indices, TaskIndices(job));
  return absl::InvalidArgumentError(
      absl::StrCat("job \"", job, "\" has no task ", index, ", it has ", absl::StrJoin(indices, ", ")));
}

std::string ClusterSpec::ToString() const {
  std::vector<std::string> lines;
  for (const auto& [job, tasks] : jobs_) {
    std::vector<std::string> words;
    const bool dense = IsDense(tasks);
    for (const auto& [index, address] : tasks) {
      words.push_back(dense ? address : absl::StrCat(index, ": ", address));
    }
    const std::string list = absl::StrJoin(words, ", ");
    lines.push_back(dense ? absl::StrCat(job, ": ", list) : absl::StrCat(job, ": {", list, "}"));
  }
  return absl::StrJoin(lines, "; ");
}

absl::StatusOr<ClusterTask> ResolveTask(const ClusterSpec& cluster, absl::optional<std::string> job,
                                        absl::optional<int> index) {
  if (!job.has_value()) {
    const std::vector<std::string> jobs = cluster.jobs();
    if (jobs.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("the cluster has ", jobs.size(), " jobs (",
                                                     absl::StrJoin(jobs, ", "), "), say which one this process is of"));
    }
    job = jobs[0];
  }
  ASSIGN_OR_RETURN(const std::vector<int> indices, cluster.TaskIndices(*job));
  if (!index.has_value()) {
    if (indices.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("job \"", *job, "\" has ", indices.size(), " tasks, say which one this process is"));
    }
    index = indices[0];
  }
  ASSIGN_OR_RETURN(std::string address, cluster.TaskAddress(*job, *index));
  return ClusterTask{*std::move(job), *index, std::move(address)};
}

}  // namespace lockstep
