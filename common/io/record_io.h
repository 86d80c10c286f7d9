#ifndef LOCKSTEP_COMMON_IO_RECORD_IO_H_
#define LOCKSTEP_COMMON_IO_RECORD_IO_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// TFRecord framing. Each record consists of the length of the payload (8 bytes), the masked CRC32C of these 8 bytes
// (4), the payload, and the masked CRC32C of the payload (4), all little-endian.

// Bytes that framing adds to a payload.
inline constexpr uint64_t kRecordOverhead = 16;

// Returns the framed form of one record. Write it with one Append, so that it is stored entirely or not at all.
std::string FrameRecord(absl::string_view payload);

// Reader of a file of records. Thread-safe after Open.
class RecordReader {
 public:
  // Treats records longer than `largest_record` bytes as errors, which limits how much memory a damaged length can
  // allocate.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(FileSystem* fs, const std::string& path,
                                                            uint64_t largest_record = uint64_t{1} << 30);

  // Returns a reader of an open file; `path` is used only in errors.
  static std::unique_ptr<RecordReader> FromFile(std::string path, std::shared_ptr<const RandomAccessFile> file,
                                                uint64_t largest_record = uint64_t{1} << 30);

  struct Position {
    // Size of the payload in bytes.
    uint64_t length;
    // Offset of the next record, or the file's size if this is the last one.
    uint64_t next;
  };

  // Reads the record at byte `offset` of the file into `*payload`. Errors: OutOfRange at the end of the file; DataLoss,
  // with file and offset, for a truncated record or a wrong checksum.
  absl::StatusOr<Position> ReadAt(uint64_t offset, std::string* payload) const;

  // Like ReadAt, but without reading the payload. For indexing a file.
  absl::StatusOr<Position> SkipAt(uint64_t offset) const;

  const std::string& path() const { return path_; }
  // Size of the file in bytes.
  uint64_t size() const { return file_->size(); }

 private:
  RecordReader(std::string path, std::shared_ptr<const RandomAccessFile> file, uint64_t largest_record);
  absl::Status Damaged(uint64_t offset, absl::string_view what) const;

  const std::string path_;
  const std::shared_ptr<const RandomAccessFile> file_;
  const uint64_t largest_record_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_RECORD_IO_H_
