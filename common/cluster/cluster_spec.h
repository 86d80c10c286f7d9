#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_SPEC_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_SPEC_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace lockstep {

// The addresses of a cluster's tasks. A cluster has jobs ("chief", "ps", "worker"), whose tasks each have an index and
// an address. A job is sparse if some indices are unused. Ordered by job name and index. A value type. All errors are
// InvalidArgument, and name the job or index and those that exist.
class ClusterSpec {
 public:
  // The addresses of one job, by index.
  using Tasks = std::map<int, std::string>;

  // Creates a cluster without jobs.
  ClusterSpec() = default;

  // Job names and addresses must not be empty, indices must be in [0, 1000000), and each job must have a task.
  static absl::StatusOr<ClusterSpec> Create(std::map<std::string, Tasks> jobs);
  // Creates dense jobs: the tasks in a list have the indices 0, 1, 2, ...
  static absl::StatusOr<ClusterSpec> FromLists(const std::map<std::string, std::vector<std::string>>& jobs);

  bool empty() const { return jobs_.empty(); }
  // Returns sorted names.
  std::vector<std::string> jobs() const;

  absl::StatusOr<int> NumTasks(absl::string_view job) const;
  // Returns sorted indices.
  absl::StatusOr<std::vector<int>> TaskIndices(absl::string_view job) const;
  // Returns the address of every index up to the largest; nullopt for unused indices.
  absl::StatusOr<std::vector<absl::optional<std::string>>> TaskList(absl::string_view job) const;
  absl::StatusOr<std::string> TaskAddress(absl::string_view job, int index) const;

  // Returns a text such as "ps: a:1, b:1; worker: {1: c:1, 3: d:1}".
  std::string ToString() const;

  friend bool operator==(const ClusterSpec& a, const ClusterSpec& b) { return a.jobs_ == b.jobs_; }
  friend bool operator!=(const ClusterSpec& a, const ClusterSpec& b) { return !(a == b); }

 private:
  absl::StatusOr<const Tasks*> Find(absl::string_view job) const;

  std::map<std::string, Tasks> jobs_;
};

// A task of a cluster.
struct ClusterTask {
  std::string job;
  int index = 0;
  std::string address;
};

// Returns the task of a process. If `job` is absent, the cluster's only job is meant; if `index` is absent, the job's
// only task. InvalidArgument if there are several to choose from or if the task is not in the cluster.
absl::StatusOr<ClusterTask> ResolveTask(const ClusterSpec& cluster, absl::optional<std::string> job,
                                        absl::optional<int> index);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_SPEC_H_
