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

// TFRecord framing. Each record is, little-endian: the length of the payload (8 bytes), the masked
// CRC32C of these 8 bytes (4), the payload, the masked CRC32C of the payload (4).

// Bytes that framing adds to a payload.
inline constexpr uint64_t kRecordOverhead = 16;

// The framed form of one record, to be written in one Append so that it is there whole or not at all.
std::string FrameRecord(absl::string_view payload);

// Reads a file of records. Thread-safe after Open.
class RecordReader {
 public:
  // No record may be longer than `largest_record` bytes; it bounds what a damaged length can allocate.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(FileSystem* fs, const std::string& path,
                                                            uint64_t largest_record = uint64_t{1} << 30);

  struct Position {
    // The payload's size in bytes.
    uint64_t length;
    // Where the next record starts; the file's size after the last one.
    uint64_t next;
  };

  // Reads the record that starts at byte `offset` of the file into `*payload`.
  // Errors: OutOfRange at the end of the file; DataLoss, with file and offset, for a record that is cut off
  // or whose checksum is wrong.
  absl::StatusOr<Position> ReadAt(uint64_t offset, std::string* payload) const;

  // The same without reading the payload, to index a file.
  absl::StatusOr<Position> SkipAt(uint64_t offset) const;

  const std::string& path() const { return path_; }
  // Bytes of the file.
  uint64_t size() const { return file_->size(); }

 private:
  RecordReader(std::string path, std::unique_ptr<RandomAccessFile> file, uint64_t largest_record);
  absl::Status Damaged(uint64_t offset, absl::string_view what) const;

  const std::string path_;
  const std::unique_ptr<RandomAccessFile> file_;
  const uint64_t largest_record_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_RECORD_IO_H_
