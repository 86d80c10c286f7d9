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
  // Where checksums are kept from run to run; empty: nowhere.
  std::string directory;
  // Called now and then while the file is read, and at the end. May be null.
  std::function<void(const IndexProgress&)> progress;
};

// Where the rows of a file are: from byte `begin` to its end, each of `bytes`, which is at least 1.
struct FileRows {
  uint64_t begin;
  uint64_t bytes;
};

// CRC32C of all rows of a file together, and of each.
struct RowChecksums {
  uint32_t all = 0;
  std::vector<uint32_t> rows;
};

// The checksums of a file that ends with a whole row. The file is read once, in pieces of a bounded size; then its
// checksums are kept in a file of `directory`, which is used again while the data (their DataIdentity) are the same.
// A failure to keep them costs only a warning.
// The kept file, little-endian: DataIdentity, the checksum of all (4 bytes), that of each row (4), CRC32C of all that
// (4).
// Errors: those of reading `contents`, which is the file at `path`, open.
absl::StatusOr<RowChecksums> KeptChecksums(FileSystem* fs, const std::string& path, const RandomAccessFile& contents,
                                           const FileRows& rows, const ChecksumOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_KEPT_CHECKSUM_H_
