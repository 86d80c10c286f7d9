#include "lockstep/common/checkpoint/bundle/bundle_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/bundle/bundle_header.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/checkpoint/bundle/slice_key.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

// Number of bytes to checksum and write at a time, so that the second pass finds them in the cache.
constexpr size_t kPieceSize = 1 << 20;
// The limit of ReadFile.
constexpr size_t kLargestIndex = 1 << 30;

constexpr int kMostDataFiles = 9999;

// Returns the number of data files that the checkpoint at `prefix` claims to have. If the checkpoint is damaged,
// returns `wanted` if a data file has that number in its name, otherwise 0. Returns nullopt if there is no checkpoint,
// and an error if the number cannot be determined, because a guess might overwrite data.
absl::StatusOr<absl::optional<int>> NumShardsOf(FileSystem* fs, const std::string& prefix, int wanted) {
  const absl::StatusOr<v1::BundleHeaderProto> header = ReadBundleHeader(fs, prefix);
  if (header.ok()) return absl::make_optional(header->num_shards());
  if (absl::IsNotFound(header.status())) return absl::optional<int>();
  if (!absl::IsDataLoss(header.status())) return header.status();
  for (int shard = 0; shard < wanted; ++shard) {
    ASSIGN_OR_RETURN(const bool exists, fs->Exists(DataPath(prefix, shard, wanted)));
    if (exists) return absl::make_optional(wanted);
  }
  return absl::make_optional(0);
}

}  // namespace

BundleWriter::BundleWriter(FileSystem* fs, std::string prefix, BundleWriterOptions options, int num_shards,
                           bool replaces)
    : fs_(fs), prefix_(std::move(prefix)), options_(std::move(options)), num_shards_(num_shards), replaces_(replaces) {}

absl::StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(FileSystem* fs, std::string prefix,
                                                                   BundleWriterOptions options) {
  if (Basename(prefix).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", prefix, "\" is not a checkpoint: it names a directory"));
  }
  const int num_files = options.num_data_files;
  if (num_files < 1 || num_files > kMostDataFiles) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", prefix, ": ", num_files, " data files; there may be 1 to ", kMostDataFiles));
  }
  ASSIGN_OR_RETURN(const absl::optional<int> replaced, NumShardsOf(fs, prefix, num_files));
  const int num_shards = replaced == num_files ? num_files + 1 : num_files;
  std::unique_ptr<BundleWriter> writer(
      new BundleWriter(fs, std::move(prefix), std::move(options), num_shards, replaced.has_value()));
  for (int shard = 0; shard < num_files; ++shard) {
    DataFile data;
    data.path = DataPath(writer->prefix_, shard, num_shards);
    ASSIGN_OR_RETURN(data.file, fs->NewWritableFile(data.path + ".tmp"));
    writer->data_.push_back(std::move(data));
  }
  return writer;
}

BundleWriter::~BundleWriter() {
  if (finished_ || data_.empty()) return;
  // Ignore errors, because files may be absent and a destructor cannot report errors.
  for (DataFile& data : data_) {
    data.file.reset();
    fs_->Remove(data.path + ".tmp").IgnoreError();
  }
  fs_->Remove(index_path() + ".tmp").IgnoreError();
  // The next save uses another prefix, so these files would accumulate on a disk that keeps failing.
  for (const DataFile& data : data_) {
    if (data_is_orphan_) fs_->Remove(data.path).IgnoreError();
  }
}

std::string BundleWriter::index_path() const { return IndexPath(prefix_); }

absl::Status BundleWriter::Add(absl::string_view name, v1::DataType dtype, const Shape& shape,
                               absl::string_view content) {
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
  const auto [it, inserted] = entries_.emplace(std::string(name), v1::BundleEntryProto());
  if (!inserted) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", prefix_, ": variable ", name, " is added twice"));
  }
  it->second.set_dtype(dtype);
  *it->second.mutable_shape() = shape.ToProto();
  status_ = AppendContent(content, &it->second);
  return status_;
}

absl::Status BundleWriter::AppendContent(absl::string_view content, v1::BundleEntryProto* entry) {
  DataFile& data = *std::min_element(data_.begin(), data_.end(),
                                     [](const DataFile& a, const DataFile& b) { return a.size < b.size; });
  entry->set_shard_id(static_cast<int32_t>(&data - data_.data()));
  entry->set_offset(data.size);
  entry->set_size(content.size());
  uint32_t crc = 0;
  for (; !content.empty(); content.remove_prefix(std::min(content.size(), kPieceSize))) {
    const absl::string_view piece = content.substr(0, kPieceSize);
    if (options_.before_piece) RETURN_IF_ERROR(options_.before_piece(offset_));
    crc = ExtendCrc32c(crc, piece);
    RETURN_IF_ERROR(data.file->Append(piece));
    data.size += piece.size();
    offset_ += piece.size();
  }
  entry->set_crc32c(MaskCrc32c(crc));
  return absl::OkStatus();
}

absl::Status BundleWriter::Finish() {
  RETURN_IF_ERROR(status_);
  if (finished_) return absl::FailedPreconditionError(absl::StrCat("checkpoint ", prefix_, " is finished"));
  const std::string directory(Dirname(prefix_));
  for (DataFile& data : data_) {
    RETURN_IF_ERROR(data.file->Sync());
    RETURN_IF_ERROR(data.file->Close());
  }
  RETURN_IF_ERROR(WriteIndex());
  for (const DataFile& data : data_) {
    RETURN_IF_ERROR(fs_->Rename(data.path + ".tmp", data.path));
    data_is_orphan_ = true;
  }
  // Without this, a power failure could keep the second rename and lose the first.
  RETURN_IF_ERROR(fs_->SyncDirectory(directory));
  data_is_orphan_ = false;  // an index may refer to it even if Rename returns an error
  RETURN_IF_ERROR(fs_->Rename(index_path() + ".tmp", index_path()));
  RETURN_IF_ERROR(fs_->SyncDirectory(directory));
  finished_ = true;
  if (replaces_) RemoveReplacedData();
  return absl::OkStatus();
}

absl::Status BundleWriter::WriteIndex() {
  v1::BundleHeaderProto header;
  header.set_num_shards(num_shards_);
  header.mutable_version()->set_producer(1);
  header.set_written_by_saver(options_.written_by_saver);
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
    const bool is_new =
        std::any_of(data_.begin(), data_.end(), [&name](const DataFile& data) { return name == Basename(data.path); });
    if (!IsDataFileOf(Basename(prefix_), name) || is_new) continue;
    const absl::Status status = fs_->Remove(JoinPath(directory, name));
    if (!status.ok()) LOG(WARNING) << "A replaced data file stays: " << status;
  }
}

}  // namespace lockstep
