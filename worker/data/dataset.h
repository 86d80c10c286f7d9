#ifndef LOCKSTEP_WORKER_DATA_DATASET_H_
#define LOCKSTEP_WORKER_DATA_DATASET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/data/batch_source.h"

namespace lockstep {

// The examples of a split, by number. A format derives from this class and fills allocated tensors. OpenDataset
// (open_dataset.h) makes the dataset that a configuration names. Constant after construction: an example's values
// depend only on its number, so exp, sin and the like come from kernels/portable_math.h and not from <cmath>.
// Thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const ExampleSpec& spec() const { return spec_; }
  // Number of examples, at least 1.
  int64_t size() const { return size_; }
  // True if batches carry a weight for each example.
  bool has_weights() const { return has_weights_; }
  // False if labels are optional (DatasetOptions) and the data has none. Then all labels are 0, of one class.
  bool has_labels() const { return has_labels_; }

  // A row of the split's files, e.g. a record or an image.
  struct Row {
    // Its number in the files, from 0.
    int64_t number = 0;
    // Index of its example, or -1 if it holds none because it is damaged or left out.
    int64_t example = 0;
  };
  // Return the number of rows, and row `i`, which must be in [0, rows()).
  virtual int64_t rows() const { return size_; }
  virtual Row RowAt(int64_t i) const { return {i, i}; }
  // Return the name of the column that identifies rows, and a row's text in it. Both are empty if there is no such
  // column.
  virtual std::string id_name() const { return ""; }
  virtual absl::StatusOr<std::string> ReadId(int64_t i) const { return std::string(); }

  // Adds the properties of the training split that the examples were made with (DataDigest.prepared).
  virtual void AddPreparation(v1::DataDigest* digest) const {}

  // Returns a digest that differs for different examples and for the same examples in a different order. Does not cover
  // normalization.
  v1::DataDigest digest() const;

  // Reads the examples with these numbers into new tensors, in the given order. A number may occur more than once.
  // Errors: InvalidArgument for a number outside [0, size()); DataLoss names a damaged file and record.
  absl::Status Read(absl::Span<const int64_t> indices, Batch* out) const;

 protected:
  // `crc32c` covers all examples (see StartOfDigest) and becomes part of digest().
  Dataset(const ExampleSpec& spec, int64_t size, bool has_weights, uint32_t crc32c, bool has_labels = true);

 private:
  // `out` has uninitialized tensors of the right types and shapes. Every index is in range.
  virtual absl::Status ReadExamples(absl::Span<const int64_t> indices, Batch* out) const = 0;

  const ExampleSpec spec_;
  const int64_t size_;
  const bool has_weights_;
  const bool has_labels_;
  const uint32_t crc32c_;
};

// Returns the start of a split's checksum, which covers the form of its examples, because the same bytes may be
// different images. The examples then extend it in order.
uint32_t StartOfDigest(const ExampleSpec& spec, bool has_weights);

// Returns the shape [size, ...shape].
Shape WithBatchDimension(int64_t size, const Shape& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_DATASET_H_
