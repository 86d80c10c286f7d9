#include "lockstep/worker/data/records/gzip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kInputBytes = 256 << 10;
constexpr size_t kOutputBytes = 1 << 20;
// Tells zlib to use a window of 32 KiB and to expect a gzip header.
constexpr int kGzipWindowBits = 15 + 16;

}  // namespace

absl::StatusOr<bool> IsGzipped(const RandomAccessFile& file) {
  if (file.size() < 2) return false;
  char magic[2];
  RETURN_IF_ERROR(file.Read(0, 2, magic));
  return magic[0] == '\x1f' && magic[1] == '\x8b';
}

GzipReader::GzipReader(const RandomAccessFile* file, std::string name)
    : file_(file), name_(std::move(name)), stream_(std::make_unique<z_stream_s>()) {
  CHECK_EQ(inflateInit2(stream_.get(), kGzipWindowBits), Z_OK);
}

GzipReader::~GzipReader() { inflateEnd(stream_.get()); }

absl::StatusOr<std::string> GzipReader::Read(uint64_t n) {
  std::string out;
  while (out.size() < n) {
    const size_t start = out.size();
    out.resize(start + static_cast<size_t>(std::min<uint64_t>(kOutputBytes, n - start)));
    size_t produced = 0;
    RETURN_IF_ERROR(Inflate(&out[start], out.size() - start, &produced));
    out.resize(start + produced);
    if (produced == 0) break;
  }
  return out;
}

absl::Status GzipReader::FillInput() {
  if (stream_->avail_in > 0 || file_offset_ == file_->size()) return absl::OkStatus();
  input_.resize(static_cast<size_t>(std::min<uint64_t>(kInputBytes, file_->size() - file_offset_)));
  RETURN_IF_ERROR(file_->Read(file_offset_, input_.size(), &input_[0]));
  file_offset_ += input_.size();
  stream_->next_in = reinterpret_cast<Bytef*>(&input_[0]);
  stream_->avail_in = static_cast<uInt>(input_.size());
  return absl::OkStatus();
}

void GzipReader::SkipZeros() {
  is_padded_ = true;
  while (stream_->avail_in > 0 && *stream_->next_in == 0) {
    ++stream_->next_in;
    --stream_->avail_in;
  }
}

// Produces at least one byte unless the contents have ended.
absl::Status GzipReader::Inflate(char* out, size_t capacity, size_t* produced) {
  stream_->next_out = reinterpret_cast<Bytef*>(out);
  stream_->avail_out = static_cast<uInt>(capacity);
  while (stream_->avail_out == capacity) {
    RETURN_IF_ERROR(FillInput());
    if (stream_->avail_in == 0) {
      if (member_ended_) break;
      return absl::DataLossError(
          absl::StrCat(name_, ": the compressed file ends early, after ", file_->size(), " bytes"));
    }
    if (member_ended_ && has_member_ && *stream_->next_in == 0) {
      SkipZeros();
      continue;
    }
    if (is_padded_) {
      return absl::DataLossError(absl::StrCat(name_, ": the compressed data ends and zeros follow, but byte ",
                                              file_offset_ - stream_->avail_in, " of ", file_->size(),
                                              " is neither zero nor the end"));
    }
    has_member_ = true;
    if (member_ended_) CHECK_EQ(inflateReset(stream_.get()), Z_OK);
    member_ended_ = false;
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      member_ended_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat(name_, ": does not inflate near byte ", file_offset_ - stream_->avail_in,
                                              " of ", file_->size(), ": ",
                                              stream_->msg != nullptr ? stream_->msg : zError(result)));
    }
  }
  *produced = capacity - stream_->avail_out;
  return absl::OkStatus();
}

}  // namespace lockstep
