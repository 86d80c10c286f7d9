#ifndef LOCKSTEP_WORKER_SESSION_WORKLOAD_CONFIGURED_WORKLOAD_H_
#define LOCKSTEP_WORKER_SESSION_WORKLOAD_CONFIGURED_WORKLOAD_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

struct WorkloadOptions {
  // Must outlive the workload.
  FileSystem* fs = FileSystem::Real();
  // Number of threads that compute the model. If 0, the configuration's cluster.compute_threads applies.
  int compute_threads = 0;
  // Directory for the indexes of CSV, libsvm and TFRecord files. If empty, they are rebuilt at every start.
  std::string index_directory;
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
