#ifndef LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_
#define LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/data/example_order.h"

namespace lockstep {

// Returns the batches of `dataset` by (step, slot), in the order of ExampleOrder. Batches are computed on demand;
// PrefetchedBatches can prepare them ahead of time in a thread.
//
// Errors: those of ExampleOrder::Create; InvalidArgument if batch_size is too large for the examples, or if
// augmentation is configured for examples that are not images. Get returns the errors of ExampleOrder::Indices and of
// the dataset.
absl::StatusOr<std::unique_ptr<BatchSource>> CreateBatchSource(std::shared_ptr<const Dataset> dataset,
                                                               const config::v1::InputConfig& config,
                                                               const BatchSourceOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_
