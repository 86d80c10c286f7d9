#include "worker/data/kept_checksum.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/io/crc32c.h"
#include "common/io/little_endian.h"
#include "glog/logging.h"
#include "worker/data/index_file.h"

namespace lockstep {
namespace {

constexpr uint32_t kVersion = 2;
constexpr uint64_t kKeptBytes = kDataIdentityBytes + 2 * 4;
constexpr size_t kChunkBytes = 1 << 20;
constexpr uint64_t kProgressBytes = 64 << 20;

absl::StatusOr<uint32_t> ReadAndSum(const std::string& path, const RandomAccessFile& contents, uint64_t begin,
                                    const ChecksumOptions& options) {
  uint32_t crc = 0;
  std::string chunk;
  uint64_t reported = begin;
  for (uint64_t offset = begin; offset < contents.size();) {
    chunk.resize(static_cast<size_t>(std::min<uint64_t>(kChunkBytes, contents.size() - offset)));
    RETURN_IF_ERROR(contents.Read(offset, chunk.size(), &chunk[0]));
    crc = ExtendCrc32c(crc, chunk);
    offset += chunk.size();
    if (options.progress && (offset == contents.size() || offset >= reported + kProgressBytes)) {
      options.progress({path, offset, contents.size()});
      reported = offset;
    }
  }
  return crc;
}

std::string KeptText(const std::string& identity, uint32_t crc) {
  std::string text = identity;
  AppendLittleEndian<uint32_t>(&text, crc);
  AppendLittleEndian<uint32_t>(&text, Crc32c(text));
  return text;
}

absl::Status Keep(FileSystem* fs, const ChecksumOptions& options, const std::string& path, const std::string& text) {
  RETURN_IF_ERROR(fs->CreateDirectory(options.directory));
  const std::string temporary = TemporaryIndexPath(path);
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, fs->NewWritableFile(temporary));
  absl::Status status = file->Append(text);
  if (const absl::Status closed = file->Close(); status.ok()) status = closed;
  if (status.ok()) status = fs->Rename(temporary, path);
  if (!status.ok()) fs->Remove(temporary).IgnoreError();  // It is of no use.
  return status;
}

}  // namespace

absl::StatusOr<uint32_t> KeptCrc32c(FileSystem* fs, const std::string& path, const RandomAccessFile& contents,
                                    uint64_t begin, const ChecksumOptions& options) {
  if (options.directory.empty()) return ReadAndSum(path, contents, begin, options);
  const uint64_t fingerprint = StableHash(absl::StrCat(path, "\n", begin));
  const std::string kept_path = IndexFilePath(options.directory, path, fingerprint, ".crc32c");
  const std::string identity = DataIdentity(kVersion, contents, fingerprint);
  const absl::StatusOr<std::string> kept = ReadFile(fs, kept_path);
  if (kept.ok() && kept->size() == kKeptBytes) {
    const uint32_t crc = LoadLittleEndian<uint32_t>(kept->data() + kDataIdentityBytes);
    if (*kept == KeptText(identity, crc)) return crc;
  }
  ASSIGN_OR_RETURN(const uint32_t crc, ReadAndSum(path, contents, begin, options));
  const absl::Status written = Keep(fs, options, kept_path, KeptText(identity, crc));
  if (!written.ok()) LOG(WARNING) << "the checksum of " << path << " is not kept: " << written;
  return crc;
}

}  // namespace lockstep
