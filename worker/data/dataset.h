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

// The examples of a split, by number. Each data format derives a class from this one and fills allocated tensors.
// OpenDataset (open_dataset.h) opens the dataset that a configuration describes. Constant after construction: an
// example's values depend only on its number, so exp, sin and the like come from kernels/portable_math.h and not from
// <cmath>. Thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const ExampleSpec& spec() const { return spec_; }
  // Returns the number of examples, which is at least 1.
  int64_t size() const { return size_; }
  // Returns true if batches have a weight for each example.
  bool has_weights() const { return has_weights_; }
  // Returns false if labels are optional (DatasetOptions) and the data has none. Then all labels are 0, of one class.
  bool has_labels() const { return has_labels_; }

  // A row of the split's files, e.g. a record or an image.
  struct Row {
    // Number of the row in the files, from 0.
    int64_t number = 0;
    // Index of the row's example, or -1 if it has none because it is damaged or left out.
    int64_t example = 0;
  };
  // Return the number of rows, and row `i`, which must be in [0, rows()).
  virtual int64_t rows() const { return size_; }
  virtual Row RowAt(int64_t i) const { return {i, i}; }
  // Return the name of the column that identifies rows, and a row's text in it. Both are empty if there is no such
  // column.
  virtual std::string id_name() const { return ""; }
  virtual absl::StatusOr<std::string> ReadId(int64_t i) const { return std::string(); }

  // Adds the properties of the training split with which the examples were prepared (DataDigest.prepared).
  virtual void AddPreparation(v1::DataDigest* digest) const {}

  // Returns a digest that depends on the examples and their order, but not on their normalization.
  v1::DataDigest digest() const;

  // Reads the examples with these numbers into new tensors, in the given order. A number may occur more than once.
  // Errors: InvalidArgument for a number outside [0, size()); DataLoss naming a damaged file and record.
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

// Returns the start of a split's checksum. It covers the form of the examples, because the same bytes may represent
// different images. The examples then extend it in order.
uint32_t StartOfDigest(const ExampleSpec& spec, bool has_weights);

// Returns the shape [size, ...shape].
Shape WithBatchDimension(int64_t size, const Shape& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_DATASET_H_
