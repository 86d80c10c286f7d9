#ifndef LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_
#define LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep {

struct BatchSourceOptions {
  // R: the number of slots of each step, at least 1.
  int64_t replicas_to_aggregate = 1;
  // Seeds shuffling and augmentation.
  uint64_t seed = 0;
  // The input ends after this many epochs, and a batch that reaches beyond is OutOfRange; if 0, it never ends.
  int64_t epochs = 0;
};

// The batches of `dataset` by (step, slot). Example i of a batch of B has position p = (step * R + slot) * B + i in an
// endless stream of epochs, each with its own permutation (or in file order, with no_shuffle). With SPAN, every epoch
// has all n examples. With DROP, every epoch has the first n - n mod (R * B) of its order. Batches are computed on
// demand; PrefetchedBatches adds a thread.
// Errors: InvalidArgument for a batch_size that is not positive or too large, DROP with fewer than R * B examples, and
// augmentation of examples that are not images. Get returns InvalidArgument for a step or slot out of range, and the
// errors of the dataset.
absl::StatusOr<std::unique_ptr<BatchSource>> CreateBatchSource(std::shared_ptr<const Dataset> dataset,
                                                               const config::v1::InputConfig& config,
                                                               const BatchSourceOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_ADDRESSABLE_BATCHES_H_
