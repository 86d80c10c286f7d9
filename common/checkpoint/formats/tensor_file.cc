#include "lockstep/common/checkpoint/formats/tensor_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/formats/npz.h"
#include "lockstep/common/checkpoint/formats/npz_writer.h"
#include "lockstep/common/checkpoint/formats/safetensors.h"
#include "lockstep/common/checkpoint/formats/v1_checkpoint.h"
#include "lockstep/common/io/foreign_file.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

constexpr size_t kShownCheckpoints = 10;

struct NamedTensorEntry {
  std::string name;
  TensorReader::Entry entry;
};

absl::Status WriteSafetensors(const TensorReader& source, const std::vector<NamedTensorEntry>& tensors,
                              const std::map<std::string, std::string>& metadata, WritableFile* file) {
  std::vector<SafetensorsEntry> entries;
  for (const NamedTensorEntry& tensor : tensors)
    entries.push_back({tensor.name, tensor.entry.dtype, tensor.entry.shape});
  ASSIGN_OR_RETURN(const std::string header, EncodeSafetensorsHeader(entries, metadata));
  RETURN_IF_ERROR(file->Append(header));
  for (const NamedTensorEntry& tensor : tensors) {
    ASSIGN_OR_RETURN(const Tensor value, source.Read(tensor.name));
    RETURN_IF_ERROR(file->Append(value.bytes()));
  }
  return absl::OkStatus();
}

absl::Status WriteNpz(const TensorReader& source, const std::vector<NamedTensorEntry>& tensors, WritableFile* file) {
  NpzWriter writer(file);
  for (const NamedTensorEntry& tensor : tensors) {
    ASSIGN_OR_RETURN(const Tensor value, source.Read(tensor.name));
    RETURN_IF_ERROR(writer.Add(tensor.name, value.dtype(), value.shape(), value.bytes()));
  }
  return writer.Finish();
}

absl::Status WriteSynced(FileSystem* fs, const std::string& path, TensorFileFormat format, const TensorReader& source,
                         const std::vector<NamedTensorEntry>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, fs->NewWritableFile(path));
  RETURN_IF_ERROR(format == TensorFileFormat::kNpz ? WriteNpz(source, tensors, file.get())
                                                   : WriteSafetensors(source, tensors, metadata, file.get()));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// Returns true for a checkpoint in TensorFlow's format V1. The index of another checkpoint is also a table, but it
// belongs to a prefix and does not count.
bool IsV1(FileSystem* fs, const std::string& path) {
  return CheckpointPrefixOf(path) == path && IsV1Checkpoint(fs, path);
}

}  // namespace

absl::string_view NameOf(TensorFileFormat format) { return format == TensorFileFormat::kNpz ? "npz" : "safetensors"; }

absl::StatusOr<TensorFileFormat> ParseTensorFileFormat(absl::string_view name) {
  for (const TensorFileFormat format : {TensorFileFormat::kSafetensors, TensorFileFormat::kNpz}) {
    if (name == NameOf(format)) return format;
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is none of the formats, safetensors and npz"));
}

absl::optional<TensorFileFormat> FormatOfPath(absl::string_view path) {
  for (const TensorFileFormat format : {TensorFileFormat::kSafetensors, TensorFileFormat::kNpz}) {
    if (absl::EndsWith(path, absl::StrCat(".", NameOf(format)))) return format;
  }
  return absl::nullopt;
}

absl::StatusOr<std::unique_ptr<TensorReader>> OpenTensors(FileSystem* fs, const std::string& path) {
  const absl::optional<TensorFileFormat> format = FormatOfPath(path);
  if (format == TensorFileFormat::kSafetensors) return SafetensorsReader::Open(fs, path);
  if (format == TensorFileFormat::kNpz) return NpzReader::Open(fs, path);
  const std::string prefix = CheckpointPrefixOf(path);
  ASSIGN_OR_RETURN(const bool is_v2, CheckpointExists(fs, prefix));
  if (!is_v2 && IsV1(fs, path)) return V1CheckpointReader::Open(fs, path);
  return BundleReader::Open(fs, prefix);
}

absl::StatusOr<bool> TensorsExist(FileSystem* fs, const std::string& path) {
  if (FormatOfPath(path).has_value()) return fs->Exists(path);
  ASSIGN_OR_RETURN(const bool exists, CheckpointExists(fs, CheckpointPrefixOf(path)));
  return exists || IsV1(fs, path);
}

absl::Status NoSuchCheckpoint(FileSystem* fs, const std::string& path, const std::string& logdir) {
  std::string text = absl::StrCat("there is no checkpoint ", path);
  if (const auto file = fs->NewRandomAccessFile(path); file.ok()) {
    absl::StrAppend(&text, ": the file has no ", IndexPath(Basename(path)),
                    " beside it, and it is no checkpoint of TensorFlow's format V1",
                    IsV1(fs, path) ? "; here only format V2 can be used" : "", ForeignFormatOf(**file));
  }
  const bool is_name = Basename(path) == path && !logdir.empty();
  std::string directory = is_name ? logdir : std::string(Dirname(path));
  auto names = fs->ListDirectory(path);
  if (names.ok()) {
    directory = path;
    absl::StrAppend(&text, ": it is a directory; name a checkpoint in it");
  } else {
    names = fs->ListDirectory(directory);
  }
  if (!names.ok()) return absl::NotFoundError(absl::StrCat(text, "; ", names.status().message()));
  std::vector<std::string> prefixes;
  for (const std::string& name : *names) {
    absl::string_view prefix = name;
    if (absl::ConsumeSuffix(&prefix, ".index")) prefixes.push_back(JoinPath(directory, prefix));
  }
  const size_t count = prefixes.size();
  prefixes.resize(std::min(count, kShownCheckpoints));
  absl::StrAppend(&text, count == 0 ? "; the directory has none" : "; the directory has ",
                  absl::StrJoin(prefixes, ", "), count > kShownCheckpoints ? ", ..." : "");
  return absl::NotFoundError(text);
}

absl::Status WriteTensorFile(FileSystem* fs, const std::string& path, TensorFileFormat format,
                             const TensorReader& source, const TensorFileContents& contents) {
  std::vector<NamedTensorEntry> tensors;
  for (const std::string& name : contents.names) {
    ASSIGN_OR_RETURN(TensorReader::Entry entry, source.Describe(name));
    tensors.push_back({name, std::move(entry)});
  }
  // Sort larger elements first, so that each tensor is aligned, and then by name, so that the given order does not
  // matter.
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensorEntry& a, const NamedTensorEntry& b) {
    const size_t a_size = SizeOf(a.entry.dtype), b_size = SizeOf(b.entry.dtype);
    return a_size != b_size ? a_size > b_size : a.name < b.name;
  });
  const std::string temporary = path + ".tmp";
  const absl::Status written = WriteSynced(fs, temporary, format, source, tensors, contents.metadata);
  if (!written.ok()) {
    fs->Remove(temporary).IgnoreError();  // it may be absent
    return written;
  }
  RETURN_IF_ERROR(fs->Rename(temporary, path));
  return fs->SyncDirectory(std::string(Dirname(path)));
}

}  // namespace lockstep
