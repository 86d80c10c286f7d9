#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPZ_WRITER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPZ_WRITER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Writer of an archive that numpy.load reads. As with numpy.savez, the archive has a stored member NAME.npy for each
// array, with zip64 if the sizes require it. All timestamps are 1980-01-01, so that equal arrays produce equal files.
// Not thread-safe.
class NpzWriter {
 public:
  // Writes the archive to `file`, to which nothing may have been written yet. The file must outlive the writer; the
  // caller closes it.
  explicit NpzWriter(WritableFile* file) : file_(file) {}

  // Adds an array. `content` holds the elements, little-endian and row-major. Errors: InvalidArgument for a type that
  // NumPy lacks, a name of more than 65531 bytes, or a repeated name; file errors.
  absl::Status Add(absl::string_view name, v1::DataType dtype, const Shape& shape, absl::string_view content);
  // Finishes the archive. Do not call Add afterwards.
  absl::Status Finish();

 private:
  struct Member {
    std::string name;
    uint64_t offset = 0, bytes = 0;
    uint32_t crc32 = 0;
  };

  absl::Status Append(absl::string_view bytes);

  WritableFile* const file_;
  uint64_t size_ = 0;
  std::vector<Member> members_;
  std::set<std::string> names_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_NPZ_WRITER_H_
