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

// The largest file, decoded, that OpenDataFile holds in memory.
inline constexpr uint64_t kMaxDecodedBytes = uint64_t{1} << 30;

// Opens a file for reading by place. A file that is gzipped or compressed with zstd is decompressed; text in UTF-16,
// with or without a byte order mark, becomes UTF-8, and text whose lines end in CR alone gets LF. Such a file is held
// in memory; any other is read where it lies. Times and inode are those of the file on disk. Errors: those of the file;
// DataLoss for damage, for a decoded size above `max_decoded_bytes` or out of proportion to the file's own, and for a
// file that is recognized as no data (ForeignFormat).
absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenDataFile(FileSystem* fs, const std::string& path,
                                                               DataFileKind kind,
                                                               uint64_t max_decoded_bytes = kMaxDecodedBytes);

// Returns `text` if it is UTF-8, otherwise the UTF-8 form of its Latin-1 characters (ISO 8859-1).
std::string FromUtf8OrLatin1(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_DATA_FILE_H_
