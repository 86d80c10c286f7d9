#ifndef LOCKSTEP_WORKER_DATA_AUGMENTATION_H_
#define LOCKSTEP_WORKER_DATA_AUGMENTATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/data/normalization.h"

namespace lockstep {

// Random changes to training images: each padded image is cropped, then flipped horizontally or not. The random numbers
// come from Philox::ForSlot(seed, "augmentation", step, slot), one block for each example of the batch. Images are
// already normalized, so the padding is the normalized value of zero. Constant after construction, thread-safe.
class Augmentation {
 public:
  // Returns InvalidArgument if augmentation is on and the examples are not DT_FLOAT images [rows, columns, channels].
  static absl::StatusOr<Augmentation> Create(const config::v1::InputConfig::Augmentation& config,
                                             const ExampleSpec& spec, const Normalization& normalization,
                                             uint64_t seed);

  // Replaces batch->features.
  void Apply(int64_t step, int64_t slot, Batch* batch) const;

 private:
  Augmentation() = default;

  bool flip_ = false;
  int64_t padding_ = 0;
  float padding_value_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_AUGMENTATION_H_
