#include "lockstep/common/checkpoint/bundle/bundle_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/checkpoint/bundle/slice_key.h"
#include "lockstep/common/checkpoint/bundle/string_tensor.h"
#include "lockstep/common/checkpoint/bundle/tensor_slice.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

constexpr int kLargestNumShards = 99999;
// TensorFlow's limit.
constexpr int kMostDimensions = 254;
// Limit for the strings of one entry, which are read as a whole. A sparse file may claim any size without using disk
// space.
constexpr int64_t kMostStringBytes = 1 << 30;
// Maximum number of bytes of a key to include in an error message.
constexpr size_t kShownKeyBytes = 200;

uint64_t NumElements(const v1::BundleEntryProto& entry) { return Shape::FromProto(entry.shape())->num_elements(); }

// Returns false if the entry has more parts than are allowed, since later checks take time and memory for each part.
bool HasFewParts(const v1::BundleEntryProto& entry) {
  if (entry.shape().dim_size() > kMostDimensions || entry.slices_size() > kMostSlices) return false;
  return std::all_of(entry.slices().begin(), entry.slices().end(), [&entry](const v1::TensorSliceProto& slice) {
    return slice.extent_size() == entry.shape().dim_size();
  });
}

}  // namespace

BundleReader::BundleReader(FileSystem* fs, std::string prefix) : fs_(fs), prefix_(std::move(prefix)) {}

absl::StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(FileSystem* fs, const std::string& prefix) {
  std::unique_ptr<BundleReader> reader(new BundleReader(fs, prefix));
  RETURN_IF_ERROR(reader->ReadIndex());
  return reader;
}

absl::Status BundleReader::Damaged(absl::string_view key, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("checkpoint ", prefix_, ": variable ",
                                          absl::CHexEscape(key.substr(0, kShownKeyBytes)),
                                          key.size() > kShownKeyBytes ? "..." : "", ": ", what));
}

absl::Status BundleReader::ReadIndex() {
  const std::string path = IndexPath(prefix_);
  ASSIGN_OR_RETURN(const std::string table, ReadFile(fs_, path));
  v1::BundleHeaderProto header;
  absl::Status damage;
  const absl::Status status = ReadIndexTable(table, [&](absl::string_view key, absl::string_view value) {
    if (!key.empty()) {
      damage = AddEntry(key, value);
    } else if (!header.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      header.Clear();
    }
    return damage;
  });
  RETURN_IF_ERROR(damage);
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  if (header.num_shards() < 1 || header.num_shards() > kLargestNumShards) {
    return absl::DataLossError(absl::StrCat(path, ": no header with a number of data files"));
  }
  if (header.endianness() != v1::BundleHeaderProto::LITTLE) {
    return absl::UnimplementedError(absl::StrCat(path, ": written on a big-endian machine"));
  }
  written_by_saver_ = header.written_by_saver();
  RETURN_IF_ERROR(OpenShards(header));
  for (const auto& [key, entry] : entries_) {
    if (entry.slices().empty()) RETURN_IF_ERROR(CheckStored(key, entry));
  }
  for (const auto& [key, entry] : entries_) {
    if (!entry.slices().empty()) RETURN_IF_ERROR(CheckPartitioned(key, entry));
  }
  return CheckSizes();
}

absl::Status BundleReader::AddEntry(absl::string_view key, absl::string_view value) {
  v1::BundleEntryProto entry;
  if (!entry.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return Damaged(key, "the index entry is not a BundleEntryProto");
  }
  if (!HasFewParts(entry)) {
    return Damaged(key, absl::StrCat(entry.shape().dim_size(), " dimensions in ", entry.slices_size(), " slices"));
  }
  entry.DiscardUnknownFields();
  entries_.emplace_hint(entries_.end(), key, std::move(entry));
  return absl::OkStatus();
}

absl::Status BundleReader::OpenShards(const v1::BundleHeaderProto& header) {
  shards_.resize(header.num_shards());
  for (const auto& [key, entry] : entries_) {
    if (!entry.slices().empty()) continue;
    if (entry.shard_id() < 0 || entry.shard_id() >= header.num_shards()) {
      return Damaged(key, absl::StrCat("in data file ", entry.shard_id(), " of ", header.num_shards()));
    }
    if (shards_[entry.shard_id()] != nullptr) continue;
    const std::string path = DataPath(prefix_, entry.shard_id(), header.num_shards());
    auto file = fs_->NewRandomAccessFile(path);
    if (absl::IsNotFound(file.status())) return Damaged(key, absl::StrCat("its data file ", path, " is missing"));
    RETURN_IF_ERROR(file.status());
    shards_[entry.shard_id()] = *std::move(file);
  }
  return absl::OkStatus();
}

// Verifies that the entry's bytes are in the file, after which its size can be trusted.
absl::Status BundleReader::CheckStored(const std::string& key, const v1::BundleEntryProto& entry) const {
  const auto shape = Shape::FromProto(entry.shape());
  if (!shape.ok()) return Damaged(key, shape.status().message());
  const uint64_t file_size = shards_[entry.shard_id()]->size();
  const uint64_t offset = entry.offset();
  const uint64_t size = entry.size();
  if (entry.offset() < 0 || entry.size() < 0 || offset > file_size || size > file_size - offset) {
    return Damaged(key, absl::StrCat("in bytes ", entry.offset(), " to ", offset + size, " of ",
                                     DataPath(prefix_, entry.shard_id(), shards_.size()), ", which has ", file_size));
  }
  const uint64_t element_size = SizeOf(entry.dtype());
  const uint64_t elements = shape->num_elements();
  if (element_size > 0 && (size % element_size != 0 || size / element_size != elements)) {
    return Damaged(key,
                   absl::StrCat(size, " bytes for type ", NameOf(entry.dtype()), " and shape ", shape->ToString()));
  }
  return absl::OkStatus();
}

absl::Status BundleReader::CheckPartitioned(const std::string& key, const v1::BundleEntryProto& entry) const {
  const auto shape = Shape::FromProto(entry.shape());
  if (!shape.ok()) return Damaged(key, shape.status().message());
  if (SizeOf(entry.dtype()) == 0) {
    return Damaged(key, absl::StrCat("partitioned, of type ", NameOf(entry.dtype())));
  }
  std::vector<TensorSlice> slices;
  for (const v1::TensorSliceProto& proto : entry.slices()) {
    auto slice = TensorSlice::FromProto(proto, *shape);
    if (!slice.ok()) return Damaged(key, slice.status().message());
    const auto stored = entries_.find(SliceKey(key, proto));
    if (stored == entries_.end() || !stored->second.slices().empty()) {
      return Damaged(key, absl::StrCat("its slice ", slice->ToString(), " is missing"));
    }
    if (stored->second.dtype() != entry.dtype() || NumElements(stored->second) != slice->num_elements()) {
      return Damaged(key, absl::StrCat("its slice ", slice->ToString(), " has ", NumElements(stored->second),
                                       " elements of type ", NameOf(stored->second.dtype())));
    }
    slices.push_back(*std::move(slice));
  }
  const absl::Status cover = CheckCover(slices, *shape);
  return cover.ok() ? cover : Damaged(key, cover.message());
}

absl::Status BundleReader::CheckSizes() const {
  std::vector<uint64_t> used(shards_.size(), 0);
  for (const auto& [key, entry] : entries_) {
    if (!entry.slices().empty()) continue;
    const uint64_t file_size = shards_[entry.shard_id()]->size();
    const uint64_t size = entry.size();
    if (size > file_size - used[entry.shard_id()]) {
      return Damaged(key, absl::StrCat("its ", size, " bytes and those before are more than the ", file_size, " of ",
                                       DataPath(prefix_, entry.shard_id(), shards_.size())));
    }
    used[entry.shard_id()] += size;
  }
  return absl::OkStatus();
}

std::vector<std::string> BundleReader::names() const {
  std::vector<std::string> names;
  for (const auto& [key, entry] : entries_) {
    if (!IsSliceKey(key)) names.push_back(key);
  }
  return names;
}

bool BundleReader::Contains(absl::string_view name) const { return Find(name).ok(); }

absl::StatusOr<const v1::BundleEntryProto*> BundleReader::Find(absl::string_view name) const {
  const auto it = entries_.find(std::string(name));
  if (it == entries_.end() || IsSliceKey(name)) {
    return absl::NotFoundError(absl::StrCat("checkpoint ", prefix_, " has no variable ", name));
  }
  return &it->second;
}

absl::StatusOr<BundleReader::Entry> BundleReader::Describe(absl::string_view name) const {
  ASSIGN_OR_RETURN(const v1::BundleEntryProto* const entry, Find(name));
  ASSIGN_OR_RETURN(Shape shape, Shape::FromProto(entry->shape()));
  const uint64_t bytes =
      entry->slices().empty() ? entry->size() : static_cast<uint64_t>(shape.num_elements()) * SizeOf(entry->dtype());
  return Entry{entry->dtype(), std::move(shape), bytes};
}

absl::Status BundleReader::CheckPlace(const Place& place) const {
  ASSIGN_OR_RETURN(const Entry entry, Describe(place.name));
  if (place.out.size() == entry.bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("checkpoint ", prefix_, ": variable ", place.name, " has ",
                                                 entry.bytes, " bytes and is read into ", place.out.size()));
}

absl::Status BundleReader::ReadInto(absl::string_view name, absl::Span<char> out) const {
  ASSIGN_OR_RETURN(const v1::BundleEntryProto* const stored, Find(name));
  RETURN_IF_ERROR(CheckPlace({std::string(name), out}));
  if (stored->slices().empty()) return ReadStored(name, *stored, out.data());
  return ReadPartitioned(name, *stored, out.data());
}

FileRange BundleReader::RangeOf(const v1::BundleEntryProto& entry, char* out) const {
  return {shards_[entry.shard_id()].get(), static_cast<uint64_t>(entry.offset()), static_cast<uint64_t>(entry.size()),
          out};
}

absl::Status BundleReader::CheckCrc(absl::string_view key, const v1::BundleEntryProto& entry, uint32_t crc) const {
  if (MaskCrc32c(crc) == entry.crc32c()) return absl::OkStatus();
  return Damaged(key,
                 absl::StrCat("its ", entry.size(), " bytes in ", DataPath(prefix_, entry.shard_id(), shards_.size()),
                              " have checksum ", crc, " where ", UnmaskCrc32c(entry.crc32c()), " is stored"));
}

absl::Status BundleReader::ReadStored(absl::string_view key, const v1::BundleEntryProto& entry, char* out) const {
  if (entry.dtype() == v1::DT_STRING) {
    if (entry.size() > kMostStringBytes) {
      return Damaged(key, absl::StrCat("its strings have ", entry.size(), " bytes in ",
                                       DataPath(prefix_, entry.shard_id(), shards_.size()), "; at most ",
                                       kMostStringBytes, " are read"));
    }
    const RandomAccessFile& file = *shards_[entry.shard_id()];
    std::string encoded(entry.size(), '\0');
    RETURN_IF_ERROR(file.Read(entry.offset(), encoded.size(), &encoded[0]));
    const absl::Status status = CheckStrings(encoded, NumElements(entry), UnmaskCrc32c(entry.crc32c()));
    if (!status.ok()) return Damaged(key, status.message());
    if (out != nullptr) std::memcpy(out, encoded.data(), encoded.size());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> crcs, ReadChecksummed({RangeOf(entry, out)}, /*pool=*/nullptr));
  return CheckCrc(key, entry, crcs[0]);
}

absl::Status BundleReader::ReadPartitioned(absl::string_view name, const v1::BundleEntryProto& entry, char* out) const {
  ASSIGN_OR_RETURN(const Shape shape, Shape::FromProto(entry.shape()));
  for (const v1::TensorSliceProto& proto : entry.slices()) {
    const v1::BundleEntryProto& stored = entries_.at(SliceKey(name, proto));
    std::string content(stored.size(), '\0');
    RETURN_IF_ERROR(ReadStored(SliceKey(name, proto), stored, &content[0]));
    ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::FromProto(proto, shape));
    slice.CopyInto(content.data(), shape, SizeOf(entry.dtype()), out);
  }
  return absl::OkStatus();
}

absl::Status BundleReader::Verify() const { return VerifyInto({}, /*pool=*/nullptr); }

absl::Status BundleReader::VerifyInto(absl::Span<const Place> places, ThreadPool* pool) const {
  std::map<absl::string_view, char*> out;
  for (const Place& place : places) {
    RETURN_IF_ERROR(CheckPlace(place));
    out.emplace(place.name, place.out.data());
  }
  std::vector<std::pair<absl::string_view, const v1::BundleEntryProto*>> stored;
  std::vector<FileRange> ranges;
  for (const auto& [key, entry] : entries_) {
    const auto wanted = out.find(key);
    char* const place = wanted == out.end() ? nullptr : wanted->second;
    if (!entry.slices().empty()) {
      // The slices have their own entries, which are verified with the others.
      if (place != nullptr) RETURN_IF_ERROR(ReadPartitioned(key, entry, place));
    } else if (entry.dtype() == v1::DT_STRING) {
      RETURN_IF_ERROR(ReadStored(key, entry, place));
    } else {
      stored.emplace_back(key, &entry);
      ranges.push_back(RangeOf(entry, place));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> crcs, ReadChecksummed(ranges, pool));
  for (size_t i = 0; i < stored.size(); ++i) RETURN_IF_ERROR(CheckCrc(stored[i].first, *stored[i].second, crcs[i]));
  return absl::OkStatus();
}

}  // namespace lockstep
