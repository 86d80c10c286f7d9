#ifndef LOCKSTEP_WORKER_DATA_RECORDS_KEPT_CHECKSUM_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_KEPT_CHECKSUM_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

struct ChecksumOptions {
  // Directory in which checksums are kept between runs. If empty, they are not kept.
  std::string directory;
  // Called periodically while the file is read, and at the end. May be null.
  std::function<void(const IndexProgress&)> progress;
};

// The rows of a file, which extend from byte `begin` to its end. Each has `bytes` bytes, at least 1.
struct FileRows {
  uint64_t begin;
  uint64_t bytes;
};

// CRC32C of all rows of a file together, and of each row.
struct RowChecksums {
  uint32_t all = 0;
  std::vector<uint32_t> rows;
};

// Returns the checksums of a file that ends with a complete row. Reads the file once, in pieces of bounded size, and
// then stores its checksums in a file in `directory`, which is reused as long as the data (its DataIdentity) stays the
// same. A failure to store them causes only a warning.
//
// The stored file, little-endian: DataIdentity, the checksum of all rows (4 bytes), the checksum of each row (4),
// CRC32C of everything before it (4).
//
// Returns errors from reading `contents`, which is the open file at `path`.
absl::StatusOr<RowChecksums> KeptChecksums(FileSystem* fs, const std::string& path, const RandomAccessFile& contents,
                                           const FileRows& rows, const ChecksumOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_KEPT_CHECKSUM_H_
