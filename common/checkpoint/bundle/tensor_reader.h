#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_TENSOR_READER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_TENSOR_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Named tensors on disk in any format: a checkpoint (BundleReader) or a file of weights (formats/). The input is
// untrusted: damage, even deliberate, is DataLoss naming the file and the tensor. Thread-safe.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  // A checkpoint's prefix or a file's path.
  virtual const std::string& prefix() const = 0;
  // Sorted.
  virtual std::vector<std::string> names() const = 0;
  virtual bool Contains(absl::string_view name) const = 0;

  struct Entry {
    v1::DataType dtype;
    Shape shape;
    // Bytes that ReadInto needs: elements x element size; for strings, the size of their encoding in the file.
    uint64_t bytes;
  };
  // NotFound names the tensor and the file that lacks it; Unimplemented for a type or memory layout without an Entry.
  virtual absl::StatusOr<Entry> Describe(absl::string_view name) const = 0;

  // A line of a listing, also for tensors of types that are not read.
  struct Listing {
    std::string type;
    Shape shape;
    uint64_t bytes;
  };
  // Errors: those of Describe, except that a type without an Entry is no error.
  virtual absl::StatusOr<Listing> List(absl::string_view name) const;

  // Reads a tensor, row-major and little-endian, into the caller's memory; `out` must have Entry.bytes bytes. Verifies
  // the checksum of a format that has one. Errors: those of Describe, DataLoss, or the file's.
  virtual absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const = 0;

  // Returns a tensor. Unimplemented also for strings and other types without a fixed size.
  absl::StatusOr<Tensor> Read(absl::string_view name) const;

  // Reads everything except tensors of types that are not read, and verifies all checksums of the format.
  virtual absl::Status Verify() const;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_TENSOR_READER_H_
