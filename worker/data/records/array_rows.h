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

// The rows of an array, an example each, as the bytes of a file: in memory, or, where that would be too much, on disk
// with 4 bytes in memory for each. Thread-safe, but for Checksum.
class ArrayRows {
 public:
  // The largest array that is held in memory. On disk every example out of order is a system call.
  static constexpr uint64_t kHeldBytes = 256 << 20;

  ArrayRows() = default;
  // `contents` is whole rows of `row_bytes`. `path` is for errors.
  ArrayRows(std::string path, std::string contents, uint64_t row_bytes);
  // The rows are the file from byte `begin` to its end. They are read into memory when there are at most `held_bytes`,
  // or when a row is smaller than its checksum.
  static absl::StatusOr<ArrayRows> FromFile(std::string path, std::unique_ptr<RandomAccessFile> file, uint64_t begin,
                                            uint64_t row_bytes, uint64_t held_bytes = kHeldBytes);

  // Copies rows [row, row + count) to `out`. Errors, of rows on disk: DataLoss when one is no longer what Checksum
  // read; those of RandomAccessFile.
  absl::Status Read(int64_t row, int64_t count, uint8_t* out) const;

  // CRC32C of all rows. Those that stay on disk are read for it, unless their checksums were kept, and compared with
  // theirs at each Read from then on. Not while another thread reads.
  absl::StatusOr<uint32_t> Checksum(FileSystem* fs, const ChecksumOptions& options);

  uint64_t row_bytes() const { return row_bytes_; }
  // The rows if they are in memory, else nullptr.
  const uint8_t* memory() const { return file_ ? nullptr : reinterpret_cast<const uint8_t*>(contents_.data()); }

 private:
  std::string path_;
  uint64_t row_bytes_ = 0;
  std::string contents_;
  std::unique_ptr<RandomAccessFile> file_;
  // CRC32C of each row on disk; empty before Checksum.
  std::vector<uint32_t> row_crc32c_;
  uint64_t begin_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_ARRAY_ROWS_H_
