#ifndef LOCKSTEP_WORKER_DATA_KEPT_CHECKSUM_H_
#define LOCKSTEP_WORKER_DATA_KEPT_CHECKSUM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/io/file_system.h"
#include "worker/data/record_scanner.h"

namespace lockstep {

struct ChecksumOptions {
  // Where checksums are kept from run to run; empty: nowhere.
  std::string directory;
  // Called now and then while the file is read, and at the end. May be null.
  std::function<void(const IndexProgress&)> progress;
};

// CRC32C of a file from byte `begin` to its end. The file is read once, in pieces of a bounded size; then its checksum
// is kept in a file of `directory`, which is used again while size and time of the data are the same. That a checksum
// cannot be kept costs only a warning.
// The kept file: DataIdentity, the checksum (4 bytes, little-endian), CRC32C of all that (4).
// Errors: those of reading `contents`, which is the file at `path`, open.
absl::StatusOr<uint32_t> KeptCrc32c(FileSystem* fs, const std::string& path, const RandomAccessFile& contents,
                                    uint64_t begin, const ChecksumOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_KEPT_CHECKSUM_H_
