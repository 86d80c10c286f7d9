#ifndef LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_
#define LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/data/example_order.h"

namespace lockstep {

// The batches of `dataset` by (step, slot), in the order of ExampleOrder. Batches are computed on demand;
// PrefetchedBatches adds a thread.
// Errors: any from ExampleOrder::Create; InvalidArgument for a batch_size that is too large for the examples, and
// for augmentation of examples that are not images. Get returns errors from ExampleOrder::Indices and the dataset.
absl::StatusOr<std::unique_ptr<BatchSource>> CreateBatchSource(std::shared_ptr<const Dataset> dataset,
                                                               const config::v1::InputConfig& config,
                                                               const BatchSourceOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_
