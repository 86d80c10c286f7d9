#include "lockstep/worker/data/images/image_checksums.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/worker/data/records/index_file.h"

namespace lockstep {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 12;
constexpr size_t kCrcBytes = 4;

std::string Header(uint64_t fingerprint) {
  std::string header;
  AppendLittleEndian<uint32_t>(&header, kVersion);
  AppendLittleEndian<uint64_t>(&header, fingerprint);
  return header;
}

}  // namespace

ImageChecksums::ImageChecksums(FileSystem* fs, const std::string& directory, const std::string& folder,
                               uint64_t fingerprint)
    : fs_(fs),
      directory_(directory),
      path_(IndexFilePath(directory, folder, fingerprint, ".images")),
      fingerprint_(fingerprint) {
  if (directory.empty()) return;
  const absl::StatusOr<std::string> text = ReadFile(fs, path_);
  if (text.ok()) Load(*text);
}

void ImageChecksums::Load(absl::string_view text) {
  if (text.size() < kHeaderBytes + kCrcBytes || text.substr(0, kHeaderBytes) != Header(fingerprint_)) return;
  absl::string_view rest = text.substr(0, text.size() - kCrcBytes);
  if (Crc32c(rest) != LoadLittleEndian<uint32_t>(rest.data() + rest.size())) return;
  rest.remove_prefix(kHeaderBytes);
  while (rest.size() >= 4) {
    const uint64_t length = LoadLittleEndian<uint32_t>(rest.data());
    if (rest.size() < 4 + length + kDataIdentityBytes + 4) return;
    Entry& entry = entries_[std::string(rest.substr(4, length))];
    rest.remove_prefix(4 + length);
    entry.identity = std::string(rest.substr(0, kDataIdentityBytes));
    entry.checksum = LoadLittleEndian<uint32_t>(rest.data() + kDataIdentityBytes);
    rest.remove_prefix(kDataIdentityBytes + 4);
  }
}

absl::optional<uint32_t> ImageChecksums::Find(absl::string_view name, const RandomAccessFile& file) const {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.identity != DataIdentity(kVersion, file, fingerprint_)) {
    return absl::nullopt;
  }
  found->second.is_used = true;
  return found->second.checksum;
}

void ImageChecksums::Set(const std::string& name, const RandomAccessFile& file, uint32_t checksum) {
  entries_[name] = {DataIdentity(kVersion, file, fingerprint_), checksum, /*is_used=*/true};
  changed_ = true;
}

absl::Status ImageChecksums::Keep() {
  if (directory_.empty()) return absl::OkStatus();
  std::vector<std::pair<absl::string_view, const Entry*>> used;
  for (const auto& [name, entry] : entries_) {
    if (entry.is_used) used.emplace_back(name, &entry);
  }
  if (!changed_ && used.size() == entries_.size()) return absl::OkStatus();
  std::sort(used.begin(), used.end());
  std::string text = Header(fingerprint_);
  for (const auto& [name, entry] : used) {
    AppendLittleEndian<uint32_t>(&text, static_cast<uint32_t>(name.size()));
    text.append(name.data(), name.size());
    text.append(entry->identity);
    AppendLittleEndian<uint32_t>(&text, entry->checksum);
  }
  AppendLittleEndian<uint32_t>(&text, Crc32c(text));
  RETURN_IF_ERROR(fs_->CreateDirectory(directory_));
  const std::string temporary = TemporaryIndexPath(path_);
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, fs_->NewWritableFile(temporary));
  absl::Status status = file->Append(text);
  if (const absl::Status closed = file->Close(); status.ok()) status = closed;
  if (status.ok()) status = fs_->Rename(temporary, path_);
  if (!status.ok()) fs_->Remove(temporary).IgnoreError();
  return status;
}

}  // namespace lockstep
