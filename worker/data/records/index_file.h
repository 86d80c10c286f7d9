#ifndef LOCKSTEP_WORKER_DATA_RECORDS_INDEX_FILE_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_INDEX_FILE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The names and trailers of files that keep the results of reading a data file for the first time (RecordIndex,
// KeptChecksums).

// Returns "<directory>/<name of the data file>-<fingerprint><extension>".
std::string IndexFilePath(absl::string_view directory, absl::string_view data_path, uint64_t fingerprint,
                          absl::string_view extension);

constexpr uint64_t kDataIdentityBytes = 44;
// Returns a string that identifies the data at the time when `contents` was opened: `version` of the index file (4
// bytes); size (8), modification time in ns (8), inode (8) and change time in ns (8) of the data; `fingerprint` of the
// data's path and of how it is read (8). Copies of the data on two hosts have different identities. If both hosts keep
// their index in the same place, the last one remains, and the other host rebuilds its own at its next start.
std::string DataIdentity(uint32_t version, const RandomAccessFile& contents, uint64_t fingerprint);

// Returns a unique name for writing an index file before renaming it, since several workers may make the same file at
// once.
std::string TemporaryIndexPath(absl::string_view path);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_INDEX_FILE_H_
