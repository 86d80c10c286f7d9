#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPY_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// NumPy's file format for one array (numpy.lib.format, versions 1.0 to 3.0): a magic string, a header that is a Python
// dictionary, and the elements.

struct NpyHeader {
  v1::DataType dtype = v1::DT_INVALID;
  Shape shape;
  // Offset of the first element.
  size_t header_bytes = 0;
  // Number of bytes of all elements, which are little-endian and row-major.
  uint64_t content_bytes() const;
};

// Longer headers are rejected, as NumPy does by default.
constexpr size_t kMostNpyHeaderBytes = 10000 + 12;

// Parses the header of an array. `start` holds the first kMostNpyHeaderBytes bytes of the array, or all of them if
// there are fewer. Errors begin with `name`: DataLoss for an invalid or truncated header; Unimplemented, with a remedy,
// for an array in Fortran order, of a big-endian type, or of a type that v1::DataType lacks.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view start, absl::string_view name);

// Encodes a header as NumPy does, in version 1.0, padded to 64 bytes. InvalidArgument for a type that NumPy lacks
// (bfloat16, strings).
absl::StatusOr<std::string> EncodeNpyHeader(v1::DataType dtype, const Shape& shape);

// Reads the header of a .npy file and checks the file's length against it. Errors: DataLoss and Unimplemented as above;
// file errors.
absl::StatusOr<NpyHeader> ReadNpyHeader(const RandomAccessFile& file, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPY_H_
