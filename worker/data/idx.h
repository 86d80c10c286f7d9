#ifndef LOCKSTEP_WORKER_DATA_IDX_H_
#define LOCKSTEP_WORKER_DATA_IDX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/io/file_system.h"
#include "worker/data/dataset.h"
#include "worker/data/kept_checksum.h"
#include "worker/data/normalization.h"

namespace lockstep {

// An array of unsigned bytes in an IDX file, as MNIST has them: two zero bytes, the type (8), the number of
// dimensions, each dimension as a big-endian 32-bit number, then the elements, row-major.
// A gzipped file is inflated into memory, and a plain one read into it; a large plain one stays on disk and is read in
// ranges, and only 4 bytes for each of its rows are in memory (one with smaller rows is held). Thread-safe.
class IdxArray {
 public:
  // The largest plain array that is held in memory. On disk every example out of order is a system call.
  static constexpr uint64_t kHeldBytes = 256 << 20;

  // Errors: NotFound; DataLoss when the header is not that of an IDX array of bytes with `min_rank` to `max_rank`
  // dimensions, or the length contradicts it.
  static absl::StatusOr<std::unique_ptr<IdxArray>> Open(FileSystem* fs, const std::string& path, int min_rank,
                                                        int max_rank, uint64_t held_bytes = kHeldBytes);

  // At least one; the first is the number of rows.
  const std::vector<int64_t>& dims() const { return dims_; }
  // Bytes of a row.
  int64_t row_bytes() const { return row_bytes_; }

  // Copies rows [row, row + count) to `out`. Errors, of rows on disk: DataLoss when one is no longer what Checksum
  // read; those of RandomAccessFile.
  absl::Status Read(int64_t row, int64_t count, uint8_t* out) const;

  // CRC32C of all rows. Those that stay on disk are read for it, unless their checksums were kept, and compared with
  // theirs at each Read from then on. Not while another thread reads.
  absl::StatusOr<uint32_t> Checksum(FileSystem* fs, const ChecksumOptions& options);

  // The rows, when they are in memory; else nullptr.
  const uint8_t* memory() const { return file_ ? nullptr : reinterpret_cast<const uint8_t*>(contents_.data()); }

 private:
  explicit IdxArray(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  std::vector<int64_t> dims_;
  int64_t row_bytes_ = 0;
  std::string contents_;
  std::unique_ptr<RandomAccessFile> file_;
  // CRC32C of each row on disk; empty before Checksum.
  std::vector<uint32_t> row_crc32c_;
  uint64_t header_bytes_ = 0;
};

struct IdxOptions {
  Normalization normalization;
  ChecksumOptions checksum;
  // See IdxArray.
  uint64_t held_bytes = IdxArray::kHeldBytes;
};

// Images [rows, columns, 1] (or [rows, columns, channels] where the file has four dimensions), bytes scaled to
// [0, 1] and normalized; labels are classes 0 .. the greatest label. The digest is of all images, then of all labels.
// Errors: those of IdxArray; DataLoss when the two files disagree in number or hold no example. From a read of images
// on disk: DataLoss, which names file and image, when it has changed since; OutOfRange when the file has become
// shorter.
absl::StatusOr<std::unique_ptr<Dataset>> OpenIdxDataset(FileSystem* fs, const std::string& images_path,
                                                        const std::string& labels_path, const IdxOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IDX_H_
