#ifndef LOCKSTEP_WORKER_SESSION_WORKLOAD_CONFIGURED_WORKLOAD_H_
#define LOCKSTEP_WORKER_SESSION_WORKLOAD_CONFIGURED_WORKLOAD_H_

#include "absl/status/statusor.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/data/registry/dataset_options.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// The options of the data and of the task that computes with it. `fs` must outlive the workload.
struct WorkloadOptions : DatasetOptions {
  // Number of threads that compute the model. If 0, the configuration's cluster.compute_threads applies.
  int compute_threads = 0;
  Executor* executor = Executor::Threads();  // must outlive the task
  // If true, a separate thread prepares the batches.
  bool prefetch = true;
};

// Returns the number of threads that compute a model, at least one.
int ComputeThreads(const config::v1::RunSpec& config, const WorkloadOptions& options);

// Loads the input (split "train") and the model that a configuration describes.
// Returns errors from OpenDataset, CreateBatchSource and CreateModel.
absl::StatusOr<Workload> LoadWorkload(const config::v1::RunSpec& config, const WorkloadOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_WORKLOAD_CONFIGURED_WORKLOAD_H_
