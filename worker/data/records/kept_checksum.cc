#include "lockstep/worker/data/records/kept_checksum.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/worker/data/records/index_file.h"

namespace lockstep {
namespace {

constexpr uint32_t kVersion = 3;
constexpr size_t kChunkBytes = 1 << 20;
constexpr uint64_t kProgressBytes = 64 << 20;

uint64_t NumberOfRows(const RandomAccessFile& contents, const FileRows& rows) {
  return (contents.size() - rows.begin) / rows.bytes;
}

// A calculator of row checksums, to which the bytes of a file are added in order.
class RowSummer {
 public:
  RowSummer(uint64_t row_bytes, uint64_t rows) : row_bytes_(row_bytes) { sums_.rows.reserve(rows); }

  void Add(absl::string_view data) {
    sums_.all = ExtendCrc32c(sums_.all, data);
    while (!data.empty()) {
      const absl::string_view piece = data.substr(0, static_cast<size_t>(row_bytes_ - done_));
      row_ = ExtendCrc32c(row_, piece);
      done_ += piece.size();
      data.remove_prefix(piece.size());
      if (done_ < row_bytes_) return;
      sums_.rows.push_back(row_);
      row_ = 0;
      done_ = 0;
    }
  }

  RowChecksums Release() { return std::move(sums_); }

 private:
  const uint64_t row_bytes_;
  RowChecksums sums_;
  // The incomplete row's checksum, and the number of its bytes so far.
  uint32_t row_ = 0;
  uint64_t done_ = 0;
};

absl::StatusOr<RowChecksums> ReadAndSum(const std::string& path, const RandomAccessFile& contents, const FileRows& rows,
                                        const ChecksumOptions& options) {
  RowSummer summer(rows.bytes, NumberOfRows(contents, rows));
  std::string chunk;
  uint64_t reported = rows.begin;
  for (uint64_t offset = rows.begin; offset < contents.size();) {
    chunk.resize(static_cast<size_t>(std::min<uint64_t>(kChunkBytes, contents.size() - offset)));
    RETURN_IF_ERROR(contents.Read(offset, chunk.size(), &chunk[0]));
    summer.Add(chunk);
    offset += chunk.size();
    if (options.progress && (offset == contents.size() || offset >= reported + kProgressBytes)) {
      options.progress({path, offset, contents.size()});
      reported = offset;
    }
  }
  return summer.Release();
}

std::string KeptText(const std::string& identity, const RowChecksums& sums) {
  std::string text = identity;
  text.reserve(identity.size() + 4 * (sums.rows.size() + 2));
  AppendLittleEndian<uint32_t>(&text, sums.all);
  for (const uint32_t row : sums.rows) AppendLittleEndian<uint32_t>(&text, row);
  AppendLittleEndian<uint32_t>(&text, Crc32c(text));
  return text;
}

// Parses a kept file. Returns nullopt unless KeptText produced `text` for this identity and number of rows.
absl::optional<RowChecksums> ParseKept(absl::string_view text, const std::string& identity, uint64_t rows) {
  if (text.size() != identity.size() + 4 * (rows + 2) || !absl::StartsWith(text, identity)) return absl::nullopt;
  const char* const end = text.data() + text.size() - 4;
  if (LoadLittleEndian<uint32_t>(end) != Crc32c(text.substr(0, text.size() - 4))) return absl::nullopt;
  RowChecksums sums;
  const char* next = text.data() + identity.size();
  sums.all = LoadLittleEndian<uint32_t>(next);
  sums.rows.reserve(rows);
  while ((next += 4) != end) sums.rows.push_back(LoadLittleEndian<uint32_t>(next));
  return sums;
}

absl::Status Keep(FileSystem* fs, const ChecksumOptions& options, const std::string& path, const std::string& text) {
  RETURN_IF_ERROR(fs->CreateDirectory(options.directory));
  const std::string temporary = TemporaryIndexPath(path);
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, fs->NewWritableFile(temporary));
  absl::Status status = file->Append(text);
  if (const absl::Status closed = file->Close(); status.ok()) status = closed;
  if (status.ok()) status = fs->Rename(temporary, path);
  if (!status.ok()) fs->Remove(temporary).IgnoreError();  // The file is useless.
  return status;
}

}  // namespace

absl::StatusOr<RowChecksums> KeptChecksums(FileSystem* fs, const std::string& path, const RandomAccessFile& contents,
                                           const FileRows& rows, const ChecksumOptions& options) {
  if (options.directory.empty()) return ReadAndSum(path, contents, rows, options);
  const uint64_t fingerprint = StableHash(absl::StrCat(path, "\n", rows.begin));
  const std::string kept_path = IndexFilePath(options.directory, path, fingerprint, ".crc32c");
  const std::string identity =
      DataIdentity(kVersion, contents, StableHash(absl::StrCat(path, "\n", rows.begin, "\n", rows.bytes)));
  if (const absl::StatusOr<std::string> kept = ReadFile(fs, kept_path); kept.ok()) {
    absl::optional<RowChecksums> sums = ParseKept(*kept, identity, NumberOfRows(contents, rows));
    if (sums.has_value()) return *std::move(sums);
  }
  ASSIGN_OR_RETURN(RowChecksums sums, ReadAndSum(path, contents, rows, options));
  const absl::Status written = Keep(fs, options, kept_path, KeptText(identity, sums));
  if (!written.ok()) LOG(WARNING) << "the checksums of " << path << " are not kept: " << written;
  return sums;
}

}  // namespace lockstep
