#ifndef LOCKSTEP_WORKER_DATA_RECORDS_DATA_FILE_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_DATA_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

enum class DataFileKind { kTfRecord, kText };

// The largest decoded file that OpenDataFile holds in memory.
inline constexpr uint64_t kMaxDecodedBytes = uint64_t{1} << 30;

// Opens a file for random access. Decompresses gzip and zstd, converts UTF-16 text, with or without a byte order mark,
// to UTF-8, and converts lines that end in CR alone to LF. A converted file is held in memory; any other file is read
// in place. Times and inode are those of the file on disk. Errors: any from the file; DataLoss for damage, for a
// decoded size that is above `max_decoded_bytes` or out of proportion to the file's own size, and for a file that is
// recognized as something other than data (ForeignFormat).
absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenDataFile(FileSystem* fs, const std::string& path,
                                                               DataFileKind kind,
                                                               uint64_t max_decoded_bytes = kMaxDecodedBytes);

// Returns `text` if it is UTF-8, otherwise the UTF-8 form of its Latin-1 characters (ISO 8859-1).
std::string FromUtf8OrLatin1(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_DATA_FILE_H_
