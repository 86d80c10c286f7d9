#include "lockstep/common/checkpoint/formats/v1_checkpoint.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/checkpoint/bundle/tensor_slice.h"
#include "lockstep/common/checkpoint/bundle/varint.h"
#include "lockstep/common/io/file_pattern.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

constexpr uint64_t kTableMagic = 0xdb4775248b80fb57u;
constexpr uint64_t kFooterBytes = 48;

// Maximum number of dimensions of a tensor that is read.
constexpr int kMostDimensions = 254;

bool IsReadType(v1::DataType dtype) {
  return dtype == v1::DT_FLOAT || dtype == v1::DT_DOUBLE || dtype == v1::DT_INT32 || dtype == v1::DT_INT64;
}

absl::StatusOr<Shape> ShapeOf(const v1::TensorShapeProto& proto) {
  std::vector<int64_t> dims;
  for (const v1::TensorShapeProto::Dim& dim : proto.dim()) dims.push_back(dim.size());
  return Shape::Create(dims);
}

// Decodes packed varints. Returns an empty string if they are malformed.
template <typename T>
std::string FromVarints(absl::string_view packed, uint64_t elements) {
  std::string bytes;
  // Every integer takes at least one byte.
  if (elements > packed.size()) return bytes;
  bytes.reserve(elements * sizeof(T));
  while (!packed.empty()) {
    uint64_t value;
    if (!ConsumeVarint(&packed, &value)) return "";
    AppendLittleEndian<T>(&bytes, static_cast<T>(value));
  }
  return bytes;
}

// Returns the paths of all shards if `path` is PREFIX-00001-of-00002 or PREFIX-?????-of-00002; otherwise returns none.
// Returns InvalidArgument for a shard that the checkpoint cannot have.
absl::StatusOr<std::vector<std::string>> ShardsOf(absl::string_view path) {
  constexpr size_t kEndSize = 15;  // "-00001-of-00002"
  std::vector<std::string> shards;
  if (path.size() <= kEndSize) return shards;
  const absl::string_view prefix = path.substr(0, path.size() - kEndSize);
  const absl::string_view end = path.substr(prefix.size());
  const auto is_number = [](absl::string_view text) { return absl::c_all_of(text, absl::ascii_isdigit); };
  int number = 0, count;
  if (end[0] != '-' || (!is_number(end.substr(1, 5)) && end.substr(1, 5) != "?????") || end.substr(6, 4) != "-of-" ||
      !is_number(end.substr(10)) || !absl::SimpleAtoi(end.substr(10), &count)) {
    return shards;
  }
  if (absl::SimpleAtoi(end.substr(1, 5), &number) && number >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no shard of a checkpoint: of ", count, " shards, the first has the number 0"));
  }
  for (int i = 0; i < count; ++i) shards.push_back(absl::StrFormat("%s-%05d-of-%05d", prefix, i, count));
  return shards;
}

bool EndsAsTable(FileSystem* fs, const std::string& path) {
  const auto file = fs->NewRandomAccessFile(path);
  if (!file.ok() || (*file)->size() < kFooterBytes) return false;
  char magic[8];
  return (*file)->Read((*file)->size() - sizeof(magic), sizeof(magic), magic).ok() &&
         LoadLittleEndian<uint64_t>(magic) == kTableMagic;
}

// Returns the paths of the files to which `path` refers; some may be absent.
absl::StatusOr<std::vector<std::string>> FilesOf(FileSystem* fs, const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<std::string> shards, ShardsOf(path));
  if (!shards.empty()) return shards;
  ASSIGN_OR_RETURN(const bool exists, fs->Exists(path));
  auto first = MatchFiles(fs, absl::StrCat(path, "-00000-of-?????"));
  if (exists || !first.ok()) return std::vector<std::string>{path};
  if (first->size() > 1) {  // some may be other kinds of files
    const auto is_other = [fs](const std::string& file) { return !EndsAsTable(fs, file); };
    first->erase(std::remove_if(first->begin(), first->end(), is_other), first->end());
    if (first->empty()) return std::vector<std::string>{path};
  }
  if (first->size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has shards of several checkpoints, ",
                                                   absl::StrJoin(*first, " and "), "; write one of these names"));
  }
  ASSIGN_OR_RETURN(shards, ShardsOf((*first)[0]));
  return shards.empty() ? std::vector<std::string>{path} : shards;
}

}  // namespace

bool IsV1Checkpoint(FileSystem* fs, const std::string& path) {
  const auto files = FilesOf(fs, path);
  // Return true for InvalidArgument, so that Open reports the error. A single shard is enough to recognize the format,
  // because others may be missing.
  if (!files.ok()) return absl::IsInvalidArgument(files.status());
  return absl::c_any_of(*files, [fs](const std::string& file) { return EndsAsTable(fs, file); });
}

absl::StatusOr<std::unique_ptr<V1CheckpointReader>> V1CheckpointReader::Open(FileSystem* fs, const std::string& path) {
  std::unique_ptr<V1CheckpointReader> reader(new V1CheckpointReader(path));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(fs, path));
  reader->contents_.reserve(files.size());  // tensors_ points into the strings
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(std::string contents, ReadFile(fs, file));
    reader->contents_.push_back(std::move(contents));
    RETURN_IF_ERROR(reader->Load(file, reader->contents_.back()));
  }
  return reader;
}

absl::Status V1CheckpointReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path_, ": ", what));
}

absl::Status V1CheckpointReader::AddTensor(v1::SavedSliceMeta meta) {
  const std::string name = meta.name();
  const auto [found, is_new] = tensors_.try_emplace(name);
  v1::SavedSliceMeta* const known = &found->second.meta;
  if (is_new) {
    *known = std::move(meta);
  } else if (known->type() != meta.type() || known->shape().SerializeAsString() != meta.shape().SerializeAsString()) {
    return Damaged(absl::StrCat(name, " has another type or shape in another shard"));
  } else {
    known->mutable_slice()->MergeFrom(meta.slice());
  }
  if (known->shape().dim_size() <= kMostDimensions && known->slice_size() <= kMostSlices) return absl::OkStatus();
  return Damaged(
      absl::StrCat(name, " has ", known->shape().dim_size(), " dimensions in ", known->slice_size(), " slices"));
}

absl::Status V1CheckpointReader::Load(const std::string& file, absl::string_view contents) {
  const auto damaged = [&file](absl::string_view what) { return absl::DataLossError(absl::StrCat(file, ": ", what)); };
  v1::SavedTensorSlices all;
  std::vector<absl::string_view> values;
  const absl::Status read = ReadIndexTable(contents, [&](absl::string_view key, absl::string_view value) {
    if (!key.empty()) {
      values.push_back(value);
      return absl::OkStatus();
    }
    const bool parsed = value.size() <= std::numeric_limits<int>::max() &&
                        all.ParseFromArray(value.data(), static_cast<int>(value.size()));
    return parsed ? absl::OkStatus() : absl::DataLossError("its list of tensors is damaged");
  });
  if (!read.ok()) return absl::Status(read.code(), absl::StrCat(file, ": ", read.message()));
  if (!all.has_meta()) return damaged("has no list of tensors, so it is no checkpoint of format V1");
  for (v1::SavedSliceMeta& meta : *all.mutable_meta()->mutable_tensor()) RETURN_IF_ERROR(AddTensor(std::move(meta)));
  for (const absl::string_view value : values) {
    // Only the name is needed here. The numbers are decoded later, when the tensor is read.
    v1::SavedTensorSlices slices;
    if (value.size() > std::numeric_limits<int>::max() ||
        !slices.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      return damaged("a tensor is damaged");
    }
    const auto found = tensors_.find(slices.data().name());
    if (found == tensors_.end()) return damaged(absl::StrCat("its list of tensors lacks ", slices.data().name()));
    found->second.slices.push_back(value);
  }
  return absl::OkStatus();
}

std::vector<std::string> V1CheckpointReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

absl::StatusOr<const V1CheckpointReader::SavedValue*> V1CheckpointReader::Find(absl::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  if (found != tensors_.end()) return &found->second;
  return absl::NotFoundError(absl::StrCat(path_, " has no tensor ", name));
}

absl::StatusOr<TensorReader::Entry> V1CheckpointReader::Describe(absl::string_view name) const {
  ASSIGN_OR_RETURN(const SavedValue* const tensor, Find(name));
  const v1::DataType dtype = tensor->meta.type();
  if (!IsReadType(dtype)) {
    return absl::UnimplementedError(absl::StrCat(path_, ": ", name, " has type ", static_cast<int>(dtype),
                                                 ", which is not read in a checkpoint of format V1"));
  }
  auto shape = ShapeOf(tensor->meta.shape());
  if (!shape.ok()) return Damaged(absl::StrCat(name, ": ", shape.status().message()));
  // Every element takes at least one byte, so a damaged shape that claims more elements than are stored is rejected
  // before anything is allocated.
  uint64_t stored = 0;
  for (const absl::string_view slice : tensor->slices) stored += slice.size();
  const auto elements = static_cast<uint64_t>(shape->num_elements());
  if (elements > stored) {
    return Damaged(absl::StrCat(name, " has the shape ", shape->ToString(), ", its slices ", stored, " bytes"));
  }
  return Entry{dtype, *std::move(shape), elements * SizeOf(dtype)};
}

absl::StatusOr<TensorReader::Listing> V1CheckpointReader::List(absl::string_view name) const {
  ASSIGN_OR_RETURN(const SavedValue* const tensor, Find(name));
  if (IsReadType(tensor->meta.type())) {
    ASSIGN_OR_RETURN(Entry entry, Describe(name));
    return Listing{std::string(NameOf(entry.dtype)), std::move(entry.shape), entry.bytes};
  }
  uint64_t bytes = 0;
  for (const absl::string_view slice : tensor->slices) bytes += slice.size();
  auto shape = ShapeOf(tensor->meta.shape());
  if (!shape.ok()) return Damaged(absl::StrCat(name, ": ", shape.status().message()));
  return Listing{absl::StrCat("type ", static_cast<int>(tensor->meta.type())), *std::move(shape), bytes};
}

absl::StatusOr<std::string> V1CheckpointReader::Decode(const v1::SavedSlice& slice, v1::DataType dtype,
                                                       uint64_t elements) const {
  const v1::SavedTensor& data = slice.data();
  std::string bytes = data.tensor_content();
  if (bytes.empty() && dtype == v1::DT_FLOAT) bytes = data.float_val();
  if (bytes.empty() && dtype == v1::DT_DOUBLE) bytes = data.double_val();
  if (bytes.empty() && dtype == v1::DT_INT32) bytes = FromVarints<int32_t>(data.int_val(), elements);
  if (bytes.empty() && dtype == v1::DT_INT64) bytes = FromVarints<int64_t>(data.int64_val(), elements);
  if (bytes.size() == elements * SizeOf(dtype)) return bytes;
  return Damaged(absl::StrCat(slice.name(), ": a slice of ", elements, " elements of ", NameOf(dtype), " has ",
                              bytes.size(), " bytes"));
}

absl::Status V1CheckpointReader::ReadInto(absl::string_view name, absl::Span<char> out) const {
  ASSIGN_OR_RETURN(const SavedValue* const tensor, Find(name));
  ASSIGN_OR_RETURN(const Entry entry, Describe(name));
  if (out.size() != entry.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", entry.bytes, " bytes, not ", out.size()));
  }
  std::vector<TensorSlice> slices;
  for (const absl::string_view value : tensor->slices) {
    v1::SavedTensorSlices parsed;
    if (!parsed.ParseFromArray(value.data(), static_cast<int>(value.size()))) return Damaged("a tensor is damaged");
    const v1::SavedSlice& saved = parsed.data();
    v1::TensorSliceProto place = saved.slice();
    // A slice of a scalar has no extents. Neither, in old files, does a slice that covers a whole tensor.
    if (place.extent().empty()) {
      for (int i = 0; i < entry.shape.rank(); ++i) place.add_extent();
    }
    if (place.extent_size() != entry.shape.rank()) {
      return Damaged(
          absl::StrCat(name, ": a slice has ", place.extent_size(), " dimensions, the tensor ", entry.shape.rank()));
    }
    auto slice = TensorSlice::FromProto(place, entry.shape);
    if (!slice.ok()) return Damaged(absl::StrCat(name, ": ", slice.status().message()));
    ASSIGN_OR_RETURN(const std::string content, Decode(saved, entry.dtype, slice->num_elements()));
    slice->CopyInto(content.data(), entry.shape, SizeOf(entry.dtype), out.data());
    slices.push_back(*std::move(slice));
  }
  const absl::Status cover = CheckCover(slices, entry.shape);
  return cover.ok() ? cover : Damaged(absl::StrCat(name, ": ", cover.message()));
}

}  // namespace lockstep
