#include "lockstep/worker/data/records/record_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"
#include "lockstep/worker/data/records/index_file.h"

namespace lockstep {
namespace {

constexpr uint32_t kVersion = 5;
constexpr uint64_t kEntryBytes = 16;
constexpr uint64_t kRowNumberBytes = 8;
constexpr uint64_t kTrailerBytes = kDataIdentityBytes + 3 * 8 + 3 * 4;
constexpr uint64_t kMaxBytesInMemory = 64 << 20;
constexpr size_t kChunkBytes = 1 << 20;

std::string Trailer(const std::string& identity, const ScanResult& summary, uint32_t entries_crc) {
  std::string trailer = identity;
  for (const int64_t number : {summary.records, summary.damaged, summary.max_label}) {
    AppendLittleEndian<uint64_t>(&trailer, static_cast<uint64_t>(number));
  }
  AppendLittleEndian<uint32_t>(&trailer, summary.crc32c);
  AppendLittleEndian<uint32_t>(&trailer, entries_crc);
  AppendLittleEndian<uint32_t>(&trailer, Crc32c(trailer));
  return trailer;
}

bool LieWithin(uint64_t data_bytes, absl::string_view entries) {
  for (; entries.size() >= kEntryBytes; entries.remove_prefix(kEntryBytes)) {
    const uint64_t offset = LoadLittleEndian<uint64_t>(entries.data());
    const uint64_t size = LoadLittleEndian<uint32_t>(entries.data() + 8);
    if (offset > data_bytes || size > data_bytes - offset) return false;
  }
  return true;
}

absl::Status Stale(absl::string_view why) { return absl::FailedPreconditionError(why); }

}  // namespace

// A builder that receives entries while the file is scanned. Entries are written to the index file or, if there is
// none, kept in memory.
class RecordIndex::Builder {
 public:
  Builder(FileSystem* fs, std::string path, uint64_t data_bytes)
      : fs_(fs), path_(std::move(path)), data_bytes_(data_bytes) {
    if (path_.empty()) return;
    temporary_ = TemporaryIndexPath(path_);
    auto file = fs_->NewWritableFile(temporary_);
    if (file.ok()) file_ = *std::move(file);
    file_status_ = file.status();
  }

  ~Builder() {
    if (temporary_.empty()) return;
    if (file_ != nullptr) file_->Close().IgnoreError();  // The file is discarded.
    fs_->Remove(temporary_).IgnoreError();
  }

  absl::Status Add(const FoundRecord& record) {
    uint64_t size = record.size;
    if (!record.is_example) {
      without_example_.push_back(rows_);
      size = std::min<uint64_t>(size, std::numeric_limits<uint32_t>::max());
    }
    ++rows_;
    if (size > std::numeric_limits<uint32_t>::max()) {
      return absl::DataLossError(absl::StrCat("a record of ", record.size, " bytes at byte ", record.offset));
    }
    AppendLittleEndian<uint64_t>(&entries_, record.offset);
    AppendLittleEndian<uint32_t>(&entries_, static_cast<uint32_t>(size));
    AppendLittleEndian<uint32_t>(&entries_, record.crc32c);
    if (!path_.empty() && entries_.size() >= kChunkBytes) Flush();
    return file_status_;
  }

  // Returns the status of writing the index file, which is kept apart from other errors during a scan.
  const absl::Status& file_status() const { return file_status_; }

  // Moves the entries to an index without a file.
  void Release(RecordIndex* index) {
    index->entries_ = std::move(entries_);
    index->without_example_ = std::move(without_example_);
  }

  // Completes the index file and returns the index. Loads the file before making it visible, since another host may
  // replace it afterwards.
  absl::StatusOr<std::unique_ptr<RecordIndex>> Finish(const std::string& identity, const ScanResult& summary) {
    for (const int64_t row : without_example_) {
      AppendLittleEndian<uint64_t>(&entries_, static_cast<uint64_t>(row));
      if (entries_.size() >= kChunkBytes) Flush();
    }
    Flush();
    RETURN_IF_ERROR(file_status_);
    RETURN_IF_ERROR(file_->Append(Trailer(identity, summary, crc_)));
    RETURN_IF_ERROR(file_->Close());
    file_.reset();
    ASSIGN_OR_RETURN(std::unique_ptr<RecordIndex> index, Load(fs_, temporary_, identity, data_bytes_));
    RETURN_IF_ERROR(fs_->Rename(temporary_, path_));
    temporary_.clear();
    return index;
  }

 private:
  void Flush() {
    if (!file_status_.ok()) return;
    crc_ = ExtendCrc32c(crc_, entries_);
    file_status_ = file_->Append(entries_);
    entries_.clear();
  }

  FileSystem* const fs_;
  const std::string path_;
  const uint64_t data_bytes_;
  std::string temporary_;
  std::unique_ptr<WritableFile> file_;
  absl::Status file_status_;
  std::string entries_;
  uint32_t crc_ = 0;
  int64_t rows_ = 0;
  std::vector<int64_t> without_example_;
};

absl::StatusOr<std::unique_ptr<RecordIndex>> RecordIndex::Open(FileSystem* fs, const RandomAccessFile& contents,
                                                               const RecordFile& file, const RecordFormat& format,
                                                               const IndexOptions& options) {
  const uint64_t fingerprint =
      StableHash(absl::StrCat(file.path, "\n", file.begin, "\n", options.scan.on_damage, "\n", format.fingerprint()));
  const auto scan = [&](Builder* builder) {
    return ScanRecords(contents, file, format, options.scan,
                       [&](const FoundRecord& record) { return builder->Add(record); });
  };
  if (!options.directory.empty()) {
    const std::string path = IndexFilePath(options.directory, file.path, fingerprint, ".index");
    const std::string identity = DataIdentity(kVersion, contents, fingerprint);
    auto loaded = Load(fs, path, identity, contents.size());
    if (loaded.ok()) return loaded;
    if (loaded.status().code() != absl::StatusCode::kNotFound) {
      LOG(INFO) << "index " << path << " is rebuilt: " << loaded.status().message();
    }
    absl::Status written = fs->CreateDirectory(options.directory);
    if (written.ok()) {
      Builder builder(fs, path, contents.size());
      const absl::StatusOr<ScanResult> summary = scan(&builder);
      if (!summary.ok() && builder.file_status().ok()) return summary.status();
      if (summary.ok()) {
        auto built = builder.Finish(identity, *summary);
        if (built.ok()) return built;
        written = built.status();
      } else {
        written = builder.file_status();
      }
    }
    LOG(WARNING) << "the index of " << file.path << " is not kept: " << written;
  }
  std::unique_ptr<RecordIndex> index(new RecordIndex);
  Builder builder(fs, "", contents.size());
  ASSIGN_OR_RETURN(index->summary_, scan(&builder));
  builder.Release(index.get());
  return index;
}

absl::StatusOr<std::unique_ptr<RecordIndex>> RecordIndex::Load(FileSystem* fs, const std::string& path,
                                                               const std::string& expected_identity,
                                                               uint64_t data_bytes) {
  std::unique_ptr<RecordIndex> index(new RecordIndex);
  ASSIGN_OR_RETURN(index->file_, fs->NewRandomAccessFile(path));
  const uint64_t size = index->file_->size();
  if (size < kTrailerBytes) return Stale("it is too short");
  std::string trailer(kTrailerBytes, '\0');
  RETURN_IF_ERROR(index->file_->Read(size - kTrailerBytes, kTrailerBytes, &trailer[0]));
  if (absl::string_view(trailer).substr(0, kDataIdentityBytes) != expected_identity) {
    return Stale("the data or how they are read has changed");
  }
  const char* const numbers = trailer.data() + kDataIdentityBytes;
  index->summary_ = {LoadLittleEndian<int64_t>(numbers), LoadLittleEndian<int64_t>(numbers + 8),
                     LoadLittleEndian<int64_t>(numbers + 16), LoadLittleEndian<uint32_t>(numbers + 24)};
  const int64_t records = index->summary_.records, damaged = index->summary_.damaged;
  const auto most = static_cast<int64_t>(size);
  if (records < 0 || damaged < 0 || records > most || damaged > most) return Stale("it is damaged");
  const uint64_t entries_bytes = static_cast<uint64_t>(index->rows()) * kEntryBytes;
  if (size - kTrailerBytes != entries_bytes + static_cast<uint64_t>(damaged) * kRowNumberBytes) {
    return Stale("it is damaged");
  }
  uint32_t crc = 0;
  std::string chunk;
  for (uint64_t offset = 0; offset < entries_bytes; offset += chunk.size()) {
    chunk.resize(static_cast<size_t>(std::min<uint64_t>(kChunkBytes, entries_bytes - offset)));
    RETURN_IF_ERROR(index->file_->Read(offset, chunk.size(), &chunk[0]));
    crc = ExtendCrc32c(crc, chunk);
    if (!LieWithin(data_bytes, chunk)) return Stale("an entry lies outside the data");
    if (entries_bytes <= kMaxBytesInMemory) index->entries_ += chunk;
  }
  RETURN_IF_ERROR(index->LoadRowsWithoutExample(entries_bytes, &crc));
  const int64_t max_label = index->summary_.max_label;
  if (max_label < -1 || max_label > std::numeric_limits<int32_t>::max()) return Stale("no class is so large");
  if (Trailer(expected_identity, index->summary_, crc) != trailer) return Stale("it is damaged");
  if (entries_bytes <= kMaxBytesInMemory) index->file_.reset();
  return index;
}

absl::Status RecordIndex::LoadRowsWithoutExample(uint64_t begin, uint32_t* crc) {
  without_example_.reserve(static_cast<size_t>(summary_.damaged));
  std::string chunk;
  for (int64_t left = summary_.damaged; left > 0; begin += chunk.size()) {
    const auto count = std::min<int64_t>(left, kChunkBytes / kRowNumberBytes);
    chunk.resize(static_cast<size_t>(count) * kRowNumberBytes);
    RETURN_IF_ERROR(file_->Read(begin, chunk.size(), &chunk[0]));
    *crc = ExtendCrc32c(*crc, chunk);
    for (size_t at = 0; at < chunk.size(); at += kRowNumberBytes) {
      const auto row = LoadLittleEndian<int64_t>(chunk.data() + at);
      const int64_t before = without_example_.empty() ? -1 : without_example_.back();
      if (row <= before || row >= rows()) return Stale("a row without an example is out of order");
      without_example_.push_back(row);
    }
    left -= count;
  }
  return absl::OkStatus();
}

int64_t RecordIndex::RowOf(int64_t example) const {
  // Binary search for the number of rows without an example that precede this example. The j-th of these rows is
  // preceded by row - j examples.
  int64_t low = 0, high = static_cast<int64_t>(without_example_.size());
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (without_example_[middle] - middle <= example) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return example + low;
}

int64_t RecordIndex::ExampleOf(int64_t row) const {
  const auto found = std::lower_bound(without_example_.begin(), without_example_.end(), row);
  if (found != without_example_.end() && *found == row) return -1;
  return row - (found - without_example_.begin());
}

absl::StatusOr<RecordIndex::Record> RecordIndex::Get(int64_t row) const {
  const uint64_t place = static_cast<uint64_t>(row) * kEntryBytes;
  char buffer[kEntryBytes];
  const char* entry = entries_.data() + place;
  if (file_ != nullptr) {
    RETURN_IF_ERROR(file_->Read(place, kEntryBytes, buffer));
    entry = buffer;
  }
  return Record{LoadLittleEndian<uint64_t>(entry), LoadLittleEndian<uint32_t>(entry + 8),
                LoadLittleEndian<uint32_t>(entry + 12)};
}

}  // namespace lockstep
