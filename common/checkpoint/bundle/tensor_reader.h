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
// untrusted: damage, even deliberate, is a DataLoss error that names the file and the tensor. Thread-safe.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  // Returns the prefix of a checkpoint or the path of a file.
  virtual const std::string& prefix() const = 0;
  // Returns sorted names.
  virtual std::vector<std::string> names() const = 0;
  virtual bool Contains(absl::string_view name) const = 0;

  struct Entry {
    v1::DataType dtype;
    Shape shape;
    // Number of bytes that ReadInto needs: elements x element size or, for strings, the size of their encoding in the
    // file.
    uint64_t bytes;
  };
  // Errors: NotFound, with the name of the tensor and of the file that lacks it; Unimplemented for a type or memory
  // layout that an Entry cannot describe.
  virtual absl::StatusOr<Entry> Describe(absl::string_view name) const = 0;

  // An entry of a listing, which also covers tensors whose type cannot be read.
  struct Listing {
    std::string type;
    Shape shape;
    uint64_t bytes;
  };
  // Errors: those of Describe, except for a type that an Entry cannot describe.
  virtual absl::StatusOr<Listing> List(absl::string_view name) const;

  // Reads a tensor, row-major and little-endian, into the caller's memory; `out` must have Entry.bytes bytes. Verifies
  // the checksum of a format that has one. Errors: those of Describe; DataLoss; file errors.
  virtual absl::Status ReadInto(absl::string_view name, absl::Span<char> out) const = 0;

  // Reads and returns a tensor. Errors: those of ReadInto; Unimplemented for strings and other types without a fixed
  // size.
  absl::StatusOr<Tensor> Read(absl::string_view name) const;

  // Reads all tensors except those whose type cannot be read, and verifies all checksums of the format.
  virtual absl::Status Verify() const;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_TENSOR_READER_H_
