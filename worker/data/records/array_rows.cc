#include "lockstep/worker/data/records/array_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"

namespace lockstep {
namespace {

// Number of bytes kept in memory for each row on disk.
constexpr uint64_t kChecksumBytes = sizeof(uint32_t);

}  // namespace

ArrayRows::ArrayRows(std::string path, std::string contents, uint64_t row_bytes)
    : path_(std::move(path)), row_bytes_(row_bytes), contents_(std::move(contents)) {}

absl::StatusOr<ArrayRows> ArrayRows::FromFile(std::string path, std::unique_ptr<RandomAccessFile> file, uint64_t begin,
                                              uint64_t row_bytes, uint64_t held_bytes) {
  const uint64_t bytes = file->size() - begin;
  ArrayRows rows(std::move(path), "", row_bytes);
  if (bytes > held_bytes && row_bytes >= kChecksumBytes) {
    rows.file_ = std::move(file);
    rows.begin_ = begin;
    return rows;
  }
  rows.contents_.resize(bytes);
  RETURN_IF_ERROR(file->Read(begin, bytes, &rows.contents_[0]));
  return rows;
}

absl::Status ArrayRows::Read(int64_t row, int64_t count, uint8_t* out) const {
  const uint64_t offset = static_cast<uint64_t>(row) * row_bytes_;
  const size_t bytes = static_cast<size_t>(count) * row_bytes_;
  if (!file_) {
    std::copy_n(memory() + offset, bytes, out);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(file_->Read(begin_ + offset, bytes, reinterpret_cast<char*>(out)));
  const char* next = reinterpret_cast<const char*>(out);
  const int64_t checked = row_crc32c_.empty() ? 0 : count;
  for (int64_t i = row; i < row + checked; ++i, next += row_bytes_) {
    if (Crc32c({next, row_bytes_}) == row_crc32c_[i]) continue;
    return absl::DataLossError(absl::StrCat(path_, ": example ", i, " at byte ", begin_ + i * row_bytes_,
                                            " is no longer what it was when the file was read for its checksum"));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> ArrayRows::Checksum(FileSystem* fs, const ChecksumOptions& options) {
  if (!file_) return Crc32c(contents_);
  ASSIGN_OR_RETURN(RowChecksums sums, KeptChecksums(fs, path_, *file_, {begin_, row_bytes_}, options));
  row_crc32c_ = std::move(sums.rows);
  return sums.all;
}

}  // namespace lockstep
