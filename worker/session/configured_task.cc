#include "worker/session/configured_task.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/data/addressable_batches.h"
#include "worker/data/open_dataset.h"
#include "worker/data/prefetched_batches.h"
#include "worker/nn/graph_model.h"

namespace lockstep {

absl::StatusOr<TrainingWorker::Task> MakeConfiguredTask(const RunConfig& config, const ConfiguredTaskOptions& options) {
  DatasetOptions dataset_options;
  dataset_options.fs = options.fs;
  dataset_options.index_directory = options.index_directory;
  ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset,
                   OpenDataset(config.input(), "train", config.training().seed(), dataset_options));
  BatchSourceOptions source_options;
  source_options.replicas_to_aggregate = config.training().replicas_to_aggregate();
  source_options.seed = config.training().seed();
  TrainingWorker::Task task;
  task.data = dataset->digest();
  ModelOptions model_options;
  model_options.compute_threads = options.compute_threads > 0
                                      ? options.compute_threads
                                      : static_cast<int>(std::max<int64_t>(1, config.cluster().compute_threads()));
  ASSIGN_OR_RETURN(task.model, CreateModel(config.model(), dataset->spec(), model_options));
  ASSIGN_OR_RETURN(task.batches, CreateBatchSource(std::move(dataset), config.input(), source_options));
  if (options.prefetch) task.batches = std::make_unique<PrefetchedBatches>(std::move(task.batches));
  return task;
}

}  // namespace lockstep
