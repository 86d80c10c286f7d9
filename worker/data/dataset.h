#ifndef LOCKSTEP_WORKER_DATA_DATASET_H_
#define LOCKSTEP_WORKER_DATA_DATASET_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/data/batch_source.h"

namespace lockstep {

// The examples of one split, by number. A format derives from this and fills allocated tensors;
// open_dataset.h makes the one that a configuration names. Constant after construction: an example's
// values depend on its number alone, so exp, sin and the like come from kernels/portable_math.h and not
// from <cmath>. Thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const ExampleSpec& spec() const { return spec_; }
  // Number of examples, at least 1.
  int64_t size() const { return size_; }
  // Whether batches carry a weight for each example.
  bool has_weights() const { return has_weights_; }
  // False where labels are optional (DatasetOptions) and the data have none: all are 0, of one class.
  bool has_labels() const { return has_labels_; }
  // Other examples, or the same in another order, have another digest. Normalization is not part of it.
  v1::DataDigest digest() const;

  // The examples with these numbers, in this order, repetitions allowed, in new tensors.
  // Errors: InvalidArgument for a number outside [0, size()); DataLoss names a damaged file and record.
  absl::Status Read(absl::Span<const int64_t> indices, Batch* out) const;

 protected:
  // `crc32c` is of all examples, as digest() gives it: see StartOfDigest.
  Dataset(const ExampleSpec& spec, int64_t size, bool has_weights, uint32_t crc32c, bool has_labels = true);

 private:
  // `out` has the right tensors, uninitialized; every index is in range.
  virtual absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const = 0;

  const ExampleSpec spec_;
  const int64_t size_;
  const bool has_weights_;
  const bool has_labels_;
  const uint32_t crc32c_;
};

// A split's checksum starts with what each of its examples looks like (the same bytes may be other images), and is
// extended by the examples in order.
uint32_t StartOfDigest(const ExampleSpec& spec, bool has_weights);

// [size, ...shape].
Shape WithBatchDimension(int64_t size, const Shape& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_DATASET_H_
