#include "common/checkpoint/bundle_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/bundle_files.h"
#include "common/checkpoint/index_table.h"
#include "common/checkpoint/slice_key.h"
#include "common/io/crc32c.h"
#include "common/tensor/dtype.h"
#include "glog/logging.h"

namespace lockstep {
namespace {

// Checksummed and written at a time, so that the second pass over the bytes finds them in the cache.
constexpr size_t kPieceSize = 1 << 20;
// What ReadFile takes.
constexpr size_t kLargestIndex = 1 << 30;

// What the index at `prefix` says. DataLoss when it is damaged.
absl::StatusOr<int> NumShardsIn(FileSystem* fs, const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::string table, ReadFile(fs, IndexPath(prefix)));
  ASSIGN_OR_RETURN(const auto entries, DecodeIndexTable(table));
  BundleHeaderProto header;
  if (entries.count("") == 0 || !header.ParseFromString(entries.at(""))) return absl::DataLossError("no header");
  return header.num_shards();
}

// The number of data files that the checkpoint at `prefix` claims; of a damaged one whether there is a data file that
// bears the number 1. nullopt without a checkpoint. What cannot be known is an error: guessing might overwrite its
// data.
absl::StatusOr<absl::optional<int>> NumShardsOf(FileSystem* fs, const std::string& prefix) {
  const absl::StatusOr<int> claimed = NumShardsIn(fs, prefix);
  if (claimed.ok()) return absl::make_optional(*claimed);
  if (absl::IsNotFound(claimed.status())) return absl::optional<int>();
  if (!absl::IsDataLoss(claimed.status())) return claimed.status();
  ASSIGN_OR_RETURN(const bool one, fs->Exists(DataPath(prefix, 0, 1)));
  return absl::make_optional(one ? 1 : 0);
}

}  // namespace

BundleWriter::BundleWriter(FileSystem* fs, std::string prefix, BeforePiece before_piece, int num_shards, bool replaces)
    : fs_(fs),
      prefix_(std::move(prefix)),
      before_piece_(std::move(before_piece)),
      num_shards_(num_shards),
      replaces_(replaces) {}

absl::StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(FileSystem* fs, std::string prefix,
                                                                   BeforePiece before_piece) {
  if (Basename(prefix).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", prefix, "\" is no checkpoint: it names a directory"));
  }
  ASSIGN_OR_RETURN(const absl::optional<int> replaced, NumShardsOf(fs, prefix));
  const int num_shards = replaced == 1 ? 2 : 1;
  std::unique_ptr<BundleWriter> writer(
      new BundleWriter(fs, std::move(prefix), std::move(before_piece), num_shards, replaced.has_value()));
  ASSIGN_OR_RETURN(writer->data_, fs->NewWritableFile(writer->data_path() + ".tmp"));
  return writer;
}

BundleWriter::~BundleWriter() {
  if (finished_ || data_ == nullptr) return;
  data_.reset();
  // They may be absent, and there is nobody to tell.
  fs_->Remove(data_path() + ".tmp").IgnoreError();
  fs_->Remove(index_path() + ".tmp").IgnoreError();
  // The next save has another prefix: on a disk that fails again and again they would add up.
  if (data_is_orphan_) fs_->Remove(data_path()).IgnoreError();
}

std::string BundleWriter::index_path() const { return IndexPath(prefix_); }
std::string BundleWriter::data_path() const { return DataPath(prefix_, 0, num_shards_); }

absl::Status BundleWriter::Add(absl::string_view name, DataType dtype, const Shape& shape, absl::string_view content) {
  RETURN_IF_ERROR(status_);
  if (finished_) return absl::FailedPreconditionError(absl::StrCat("checkpoint ", prefix_, " is finished"));
  if (name.empty() || IsSliceKey(name)) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", prefix_, ": a variable with an empty name"));
  }
  if (name.size() > kMostIndexKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", prefix_, ": a variable whose name has ", name.size(), " bytes"));
  }
  const size_t element_size = SizeOf(dtype);
  const uint64_t expected = static_cast<uint64_t>(shape.num_elements()) * element_size;
  if (element_size == 0 || content.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", prefix_, ": variable ", name, " of type ",
                                                   NameOf(dtype), " and shape ", shape.ToString(), " has ",
                                                   content.size(), " bytes where ", expected, " are expected"));
  }
  const auto [it, inserted] = entries_.emplace(std::string(name), BundleEntryProto());
  if (!inserted) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", prefix_, ": variable ", name, " is added twice"));
  }
  it->second.set_dtype(dtype);
  *it->second.mutable_shape() = shape.ToProto();
  status_ = AppendContent(content, &it->second);
  return status_;
}

absl::Status BundleWriter::AppendContent(absl::string_view content, BundleEntryProto* entry) {
  entry->set_offset(offset_);
  entry->set_size(content.size());
  uint32_t crc = 0;
  for (; !content.empty(); content.remove_prefix(std::min(content.size(), kPieceSize))) {
    const absl::string_view piece = content.substr(0, kPieceSize);
    if (before_piece_) RETURN_IF_ERROR(before_piece_(offset_));
    crc = ExtendCrc32c(crc, piece);
    RETURN_IF_ERROR(data_->Append(piece));
    offset_ += piece.size();
  }
  entry->set_crc32c(MaskCrc32c(crc));
  return absl::OkStatus();
}

absl::Status BundleWriter::Finish() {
  RETURN_IF_ERROR(status_);
  if (finished_) return absl::FailedPreconditionError(absl::StrCat("checkpoint ", prefix_, " is finished"));
  const std::string directory(Dirname(prefix_));
  RETURN_IF_ERROR(data_->Sync());
  RETURN_IF_ERROR(data_->Close());
  RETURN_IF_ERROR(WriteIndex());
  RETURN_IF_ERROR(fs_->Rename(data_path() + ".tmp", data_path()));
  data_is_orphan_ = true;
  // Without this a power cut could keep the second rename and lose the first.
  RETURN_IF_ERROR(fs_->SyncDirectory(directory));
  data_is_orphan_ = false;  // an index may lead to it also when a file system says that it failed
  RETURN_IF_ERROR(fs_->Rename(index_path() + ".tmp", index_path()));
  RETURN_IF_ERROR(fs_->SyncDirectory(directory));
  finished_ = true;
  if (replaces_) RemoveReplacedData();
  return absl::OkStatus();
}

absl::Status BundleWriter::WriteIndex() {
  BundleHeaderProto header;
  header.set_num_shards(num_shards_);
  header.mutable_version()->set_producer(1);
  std::map<std::string, std::string> entries;
  entries[""] = header.SerializeAsString();
  for (const auto& [name, entry] : entries_) entries[name] = entry.SerializeAsString();

  const std::string table = EncodeIndexTable(entries);
  if (table.size() > kLargestIndex) {
    return absl::ResourceExhaustedError(absl::StrCat("checkpoint ", prefix_, ": an index of ", table.size(),
                                                     " bytes, more than the ", kLargestIndex, " that are read"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, fs_->NewWritableFile(index_path() + ".tmp"));
  RETURN_IF_ERROR(file->Append(table));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

void BundleWriter::RemoveReplacedData() {
  const std::string directory(Dirname(prefix_));
  const auto names = fs_->ListDirectory(directory);
  if (!names.ok()) {
    LOG(WARNING) << "The replaced data files of checkpoint " << prefix_ << " stay: " << names.status();
    return;
  }
  for (const std::string& name : *names) {
    if (!IsDataFileOf(Basename(prefix_), name) || name == Basename(data_path())) continue;
    const absl::Status status = fs_->Remove(JoinPath(directory, name));
    if (!status.ok()) LOG(WARNING) << "A replaced data file stays: " << status;
  }
}

}  // namespace lockstep
