#ifndef LOCKSTEP_WORKER_SESSION_CONFIGURED_TASK_H_
#define LOCKSTEP_WORKER_SESSION_CONFIGURED_TASK_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/io/file_system.h"
#include "proto/config.pb.h"
#include "worker/session/training_worker.h"

namespace lockstep {

struct ConfiguredTaskOptions {
  // Must outlive the task.
  FileSystem* fs = FileSystem::Real();
  // 0: cluster.compute_threads of the configuration.
  int compute_threads = 0;
  // Where the indexes of CSV, libsvm and TFRecord files are kept; empty: they are built anew at every start.
  std::string index_directory;
  // Batches are prepared in a thread of their own.
  bool prefetch = true;
};

// The input (split "train") and the model that a configuration describes.
// Errors: those of OpenDataset, CreateBatchSource and CreateModel.
absl::StatusOr<TrainingWorker::Task> MakeConfiguredTask(const RunConfig& config, const ConfiguredTaskOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_CONFIGURED_TASK_H_
