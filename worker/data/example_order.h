#ifndef LOCKSTEP_WORKER_DATA_EXAMPLE_ORDER_H_
#define LOCKSTEP_WORKER_DATA_EXAMPLE_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

struct BatchSourceOptions {
  // R: the number of slots of each step, at least 1.
  int64_t replicas_to_aggregate = 1;
  // Seeds shuffling and augmentation.
  uint64_t seed = 0;
  // The input ends after this many epochs, and a request for a batch that extends beyond the end returns OutOfRange. If
  // 0, the input never ends.
  int64_t epochs = 0;
  // If true, batches are addressed by (position, stream) instead of (step, slot), for any number of streams, and
  // replicas_to_aggregate is 1. Stream k yields the same batches as slot 0 of a run whose shuffling seed is
  // SeedOfStream(k).
  bool streams = false;
};

// Returns the options of a run's training input.
BatchSourceOptions TrainingBatches(const config::v1::RunSpec& config);

// Returns the shuffling seed of stream `stream`. For stream 0, it is `seed`.
uint64_t SeedOfStream(uint64_t seed, int64_t stream);

// The assignment of examples, which are numbers in [0, n), to each (step, slot). Example i of a batch of size B is at
// position p = (step * R + slot) * B + i in an endless stream of epochs. Each epoch has its own permutation (or file
// order, with no_shuffle). With SPAN, every epoch has all n examples. With DROP, every epoch has the first n - n mod (R
// * B) examples of its order. A value type; thread-safe.
class ExampleOrder {
 public:
  // Reads batch_size, no_shuffle and last_batch from `config`. Returns InvalidArgument if the number of examples, slots
  // or epochs is out of range, if batch_size is not positive, or if DROP is used with fewer than R * B examples.
  static absl::StatusOr<ExampleOrder> Create(int64_t examples, const config::v1::InputConfig& config,
                                             const BatchSourceOptions& options);

  // Returns the examples of a batch, in order. Errors: InvalidArgument for a step or slot out of range; OutOfRange if
  // the batch extends beyond the last epoch.
  absl::StatusOr<std::vector<int64_t>> Indices(int64_t step, int64_t slot) const;

 private:
  ExampleOrder(int64_t examples, const config::v1::InputConfig& config, const BatchSourceOptions& options);

  absl::StatusOr<std::vector<int64_t>> StreamIndices(int64_t position, int64_t stream) const;
  // Returns true if the batch that starts at position `first`, counted across all epochs, extends beyond the end of the
  // input.
  bool Ends(int64_t first) const {
    return options_.epochs > 0 && (first + batch_size_ - 1) / examples_per_epoch_ >= options_.epochs;
  }
  std::vector<int64_t> IndicesFrom(int64_t first, uint64_t seed) const;

  BatchSourceOptions options_;
  int64_t examples_;
  int64_t batch_size_;
  bool shuffle_;
  int64_t examples_per_epoch_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_EXAMPLE_ORDER_H_
