#include "common/io/faulty_file_system.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"

namespace lockstep {

class FaultyFileSystem::Writer : public WritableFile {
 public:
  Writer(FaultyFileSystem* fs, std::string path, std::unique_ptr<WritableFile> base)
      : fs_(fs), path_(std::move(path)), base_(std::move(base)) {}

  absl::Status Append(absl::string_view data) override {
    const absl::Status status = fs_->Begin(Operation::kAppend, path_);
    if (!status.ok()) {
      if (fs_->DiesNow()) RETURN_IF_ERROR(base_->Append(data.substr(0, data.size() / 2)));
      return status;
    }
    RETURN_IF_ERROR(fs_->TakeRoom(path_, data.size()));
    return base_->Append(data);
  }
  absl::Status Flush() override {
    RETURN_IF_ERROR(fs_->Begin(Operation::kFlush, path_));
    return base_->Flush();
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(fs_->Begin(Operation::kSync, path_));
    return base_->Sync();
  }
  absl::Status Close() override {
    RETURN_IF_ERROR(fs_->Begin(Operation::kClose, path_));
    return base_->Close();
  }

 private:
  FaultyFileSystem* const fs_;
  const std::string path_;
  const std::unique_ptr<WritableFile> base_;
};

class FaultyFileSystem::Reader : public RandomAccessFile {
 public:
  Reader(FaultyFileSystem* fs, std::string path, std::unique_ptr<RandomAccessFile> base)
      : fs_(fs), path_(std::move(path)), base_(std::move(base)) {}

  uint64_t size() const override { return base_->size(); }
  absl::Time modification_time() const override { return base_->modification_time(); }
  uint64_t inode() const override { return base_->inode(); }
  absl::Time change_time() const override { return base_->change_time(); }
  absl::Status Read(uint64_t offset, size_t n, char* out) const override {
    RETURN_IF_ERROR(fs_->Begin(Operation::kRead, path_));
    return base_->Read(offset, n, out);
  }

 private:
  FaultyFileSystem* const fs_;
  const std::string path_;
  const std::unique_ptr<RandomAccessFile> base_;
};

int64_t FaultyFileSystem::operations() const {
  MutexLock lock(&mutex_);
  return operations_;
}

void FaultyFileSystem::FailOperation(int64_t n, absl::Status error) {
  MutexLock lock(&mutex_);
  first_failing_ = last_failing_ = operations_ + n;
  error_ = std::move(error);
  killing_ = false;
}

void FaultyFileSystem::FailFrom(int64_t n, absl::Status error) {
  MutexLock lock(&mutex_);
  first_failing_ = operations_ + n;
  last_failing_ = kNever;
  error_ = std::move(error);
  killing_ = false;
}

void FaultyFileSystem::FailMatching(Operation operation, std::string part, absl::Status error) {
  MutexLock lock(&mutex_);
  matches_.push_back({operation, std::move(part), std::move(error)});
}

void FaultyFileSystem::KillAfter(int64_t n) {
  MutexLock lock(&mutex_);
  first_failing_ = operations_ + n + 1;
  last_failing_ = kNever;
  error_ = absl::InternalError("the process was killed");
  killing_ = true;
}

void FaultyFileSystem::FillDiskAfter(uint64_t bytes) {
  MutexLock lock(&mutex_);
  room_ = bytes;
}

void FaultyFileSystem::Heal() {
  MutexLock lock(&mutex_);
  first_failing_ = last_failing_ = kNever;
  matches_.clear();
  killing_ = false;
  room_ = std::numeric_limits<uint64_t>::max();
}

absl::Status FaultyFileSystem::Begin(Operation operation, const std::string& path) {
  MutexLock lock(&mutex_);
  ++operations_;
  absl::Status error;
  if (operations_ >= first_failing_ && operations_ <= last_failing_) error = error_;
  for (const Match& match : matches_) {
    if (error.ok() && match.operation == operation && absl::StrContains(path, match.part)) error = match.error;
  }
  if (error.ok()) return error;
  return absl::Status(error.code(), absl::StrCat(error.message(), " (operation ", operations_, ", ", path, ")"));
}

absl::Status FaultyFileSystem::TakeRoom(const std::string& path, uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > room_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write to ", path, ": No space left on device (", bytes, " bytes, room for ", room_, ")"));
  }
  room_ -= bytes;
  return absl::OkStatus();
}

bool FaultyFileSystem::DiesNow() const {
  MutexLock lock(&mutex_);
  return killing_ && operations_ == first_failing_;
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::NewWritableFile(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kCreate, path));
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_->NewWritableFile(path));
  return std::make_unique<Writer>(this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> FaultyFileSystem::NewRandomAccessFile(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kOpen, path));
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, base_->NewRandomAccessFile(path));
  return std::make_unique<Reader>(this, path, std::move(file));
}

absl::StatusOr<bool> FaultyFileSystem::Exists(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kExists, path));
  return base_->Exists(path);
}

absl::StatusOr<std::vector<std::string>> FaultyFileSystem::ListDirectory(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kList, path));
  return base_->ListDirectory(path);
}

absl::Status FaultyFileSystem::CreateDirectory(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kCreateDirectory, path));
  return base_->CreateDirectory(path);
}

absl::Status FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Begin(Operation::kRename, absl::StrCat(from, " to ", to)));
  return base_->Rename(from, to);
}

absl::Status FaultyFileSystem::Remove(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kRemove, path));
  return base_->Remove(path);
}

absl::Status FaultyFileSystem::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kSyncDirectory, path));
  return base_->SyncDirectory(path);
}

absl::StatusOr<std::unique_ptr<FileSystem::Lock>> FaultyFileSystem::LockFile(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kLock, path));
  return base_->LockFile(path);
}

}  // namespace lockstep
