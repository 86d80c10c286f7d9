#include "lockstep/common/io/record_io.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"

namespace lockstep {
namespace {
constexpr uint64_t kHeaderSize = 12;
}  // namespace

std::string FrameRecord(absl::string_view payload) {
  std::string record;
  record.reserve(payload.size() + kRecordOverhead);
  AppendLittleEndian<uint64_t>(&record, payload.size());
  AppendLittleEndian<uint32_t>(&record, MaskCrc32c(Crc32c(record)));
  record.append(payload.data(), payload.size());
  AppendLittleEndian<uint32_t>(&record, MaskCrc32c(Crc32c(payload)));
  return record;
}

RecordReader::RecordReader(std::string path, std::shared_ptr<const RandomAccessFile> file, uint64_t largest_record)
    : path_(std::move(path)), file_(std::move(file)), largest_record_(largest_record) {}

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(FileSystem* fs, const std::string& path,
                                                                 uint64_t largest_record) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, fs->NewRandomAccessFile(path));
  return FromFile(path, std::move(file), largest_record);
}

std::unique_ptr<RecordReader> RecordReader::FromFile(std::string path, std::shared_ptr<const RandomAccessFile> file,
                                                     uint64_t largest_record) {
  return std::unique_ptr<RecordReader>(new RecordReader(std::move(path), std::move(file), largest_record));
}

absl::Status RecordReader::Damaged(uint64_t offset, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path_, ": the record at byte ", offset, " ", what));
}

absl::StatusOr<RecordReader::Position> RecordReader::SkipAt(uint64_t offset) const {
  if (offset >= size()) {
    return absl::OutOfRangeError(absl::StrCat(path_, ": no record at byte ", offset, " of ", size()));
  }
  const uint64_t available = size() - offset;
  if (available < kHeaderSize) {
    return Damaged(offset, absl::StrCat("is cut off after ", available, " of ", kHeaderSize, " header bytes"));
  }
  char header[kHeaderSize];
  RETURN_IF_ERROR(file_->Read(offset, kHeaderSize, header));
  const uint64_t length = LoadLittleEndian<uint64_t>(header);
  const uint32_t stored = UnmaskCrc32c(LoadLittleEndian<uint32_t>(header + 8));
  const uint32_t computed = Crc32c(absl::string_view(header, 8));
  if (stored != computed) {
    return Damaged(offset, absl::StrCat("has a length with checksum ", computed, " where ", stored, " is stored",
                                        offset == 0 ? "; the file may hold no TFRecords" : ""));
  }
  if (length > largest_record_) {
    return Damaged(offset, absl::StrCat("has ", length, " bytes, more than the allowed ", largest_record_));
  }
  if (available < kRecordOverhead || length > available - kRecordOverhead) {
    return Damaged(offset, absl::StrCat("is cut off: it needs ", length, " + ", kRecordOverhead,
                                        " bytes and the file has ", available));
  }
  return Position{length, offset + length + kRecordOverhead};
}

absl::StatusOr<RecordReader::Position> RecordReader::ReadAt(uint64_t offset, std::string* payload) const {
  ASSIGN_OR_RETURN(const Position position, SkipAt(offset));
  payload->resize(position.length + 4);
  RETURN_IF_ERROR(file_->Read(offset + kHeaderSize, payload->size(), &(*payload)[0]));
  const uint32_t stored = UnmaskCrc32c(LoadLittleEndian<uint32_t>(payload->data() + position.length));
  payload->resize(position.length);
  const uint32_t computed = Crc32c(*payload);
  if (stored != computed) {
    return Damaged(offset, absl::StrCat("has checksum ", computed, " where ", stored, " is stored"));
  }
  return position;
}

}  // namespace lockstep
