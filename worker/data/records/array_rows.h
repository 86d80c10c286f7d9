#ifndef LOCKSTEP_WORKER_DATA_RECORDS_ARRAY_ROWS_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_ARRAY_ROWS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/records/kept_checksum.h"

namespace lockstep {

// The rows of an array in a file, as bytes, one example per row. The rows are held in memory unless they are too large;
// then they stay on disk, and only 4 bytes per row are in memory. Thread-safe except for Checksum.
class ArrayRows {
 public:
  // The largest array held in memory. On disk, every example out of order costs a system call.
  static constexpr uint64_t kHeldBytes = 256 << 20;

  ArrayRows() = default;
  // `contents` consists of whole rows of `row_bytes`. `path` is used in errors.
  ArrayRows(std::string path, std::string contents, uint64_t row_bytes);
  // Creates the rows from the bytes of the file from `begin` to its end. Reads them into memory if they have at most
  // `held_bytes` in total, or if a row is smaller than its checksum.
  static absl::StatusOr<ArrayRows> FromFile(std::string path, std::unique_ptr<RandomAccessFile> file, uint64_t begin,
                                            uint64_t row_bytes, uint64_t held_bytes = kHeldBytes);

  // Copies rows [row, row + count) to `out`. For rows on disk, returns DataLoss if a row differs from the one that
  // Checksum read, and errors from RandomAccessFile.
  absl::Status Read(int64_t row, int64_t count, uint8_t* out) const;

  // Returns the CRC32C of all rows. Reads rows on disk to compute it, unless their checksums were kept. From then on,
  // each Read compares rows with their checksums. Must not run while another thread reads.
  absl::StatusOr<uint32_t> Checksum(FileSystem* fs, const ChecksumOptions& options);

  uint64_t row_bytes() const { return row_bytes_; }
  // Returns the rows if they are in memory, otherwise nullptr.
  const uint8_t* memory() const { return file_ ? nullptr : reinterpret_cast<const uint8_t*>(contents_.data()); }

 private:
  std::string path_;
  uint64_t row_bytes_ = 0;
  std::string contents_;
  std::unique_ptr<RandomAccessFile> file_;
  // CRC32C of each row on disk. Empty before Checksum.
  std::vector<uint32_t> row_crc32c_;
  uint64_t begin_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_ARRAY_ROWS_H_
