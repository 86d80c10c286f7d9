#include "lockstep/worker/session/workload/configured_workload.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/data/addressable_batches.h"
#include "lockstep/worker/data/example_order.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/data/prefetched_batches.h"
#include "lockstep/worker/nn/graph/graph_model.h"

namespace lockstep {

int ComputeThreads(const config::v1::RunSpec& config, const WorkloadOptions& options) {
  if (options.compute_threads > 0) return options.compute_threads;
  return static_cast<int>(std::max<int64_t>(1, config.cluster().compute_threads()));
}

absl::StatusOr<Workload> LoadWorkload(const config::v1::RunSpec& config, const WorkloadOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset,
                   OpenDataset(config.input(), "train", config.training().seed(), options));
  Workload workload;
  workload.data = dataset->digest();
  ModelOptions model_options;
  model_options.compute_threads = ComputeThreads(config, options);
  ASSIGN_OR_RETURN(workload.model, CreateModel(config.model(), dataset->spec(), model_options));
  ASSIGN_OR_RETURN(workload.batches, CreateBatchSource(std::move(dataset), config.input(), TrainingBatches(config)));
  if (options.prefetch) {
    workload.batches =
        std::make_unique<PrefetchedBatches>(std::move(workload.batches), /*capacity=*/3, options.executor);
  }
  return workload;
}

}  // namespace lockstep
