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

// NumPy's file of one array (numpy.lib.format, versions 1.0 to 3.0): a magic string, a header that is a Python
// dictionary, and the elements.

struct NpyHeader {
  v1::DataType dtype = v1::DT_INVALID;
  Shape shape;
  // Where the elements begin.
  size_t header_bytes = 0;
  // Those of all elements, which are little-endian and row-major.
  uint64_t content_bytes() const;
};

// A longer header is refused, as NumPy does by default.
constexpr size_t kMostNpyHeaderBytes = 10000 + 12;

// The header of the array that begins with `start`, its first kMostNpyHeaderBytes bytes, or all of them where there are
// fewer. Errors begin with `name`: DataLoss for what is no such header, or ends early; Unimplemented, with what to
// do, for an array in Fortran order, of a big-endian type, or of a type that is none of v1::DataType.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view start, absl::string_view name);

// As NumPy writes it, version 1.0, padded to 64 bytes. InvalidArgument for a type that NumPy does not have (bfloat16,
// strings).
absl::StatusOr<std::string> EncodeNpyHeader(v1::DataType dtype, const Shape& shape);

// The header of a .npy file, whose length it agrees with. Errors: DataLoss and Unimplemented as above; those of the
// file.
absl::StatusOr<NpyHeader> ReadNpyHeader(const RandomAccessFile& file, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPY_H_
