#include "common/io/hanging_file_system.h"

#include <utility>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"

namespace lockstep {

class HangingFileSystem::Writer : public WritableFile {
 public:
  Writer(HangingFileSystem* fs, std::string path, std::unique_ptr<WritableFile> base)
      : fs_(fs), path_(std::move(path)), base_(std::move(base)) {}

  absl::Status Append(absl::string_view data) override {
    fs_->Pass(path_);
    return base_->Append(data);
  }
  absl::Status Flush() override {
    fs_->Pass(path_);
    return base_->Flush();
  }
  absl::Status Sync() override {
    fs_->Pass(path_);
    return base_->Sync();
  }
  absl::Status Close() override {
    fs_->Pass(path_);
    return base_->Close();
  }

 private:
  HangingFileSystem* const fs_;
  const std::string path_;
  const std::unique_ptr<WritableFile> base_;
};

void HangingFileSystem::Hang(const std::string& part) {
  MutexLock lock(&mutex_);
  part_ = part;
}

void HangingFileSystem::Release() {
  MutexLock lock(&mutex_);
  part_.reset();
  changed_.SignalAll();
}

void HangingFileSystem::AwaitHanging() {
  MutexLock lock(&mutex_);
  while (hanging_ == 0) changed_.Wait(&mutex_);
}

void HangingFileSystem::Pass(const std::string& path) {
  MutexLock lock(&mutex_);
  const auto hangs = [this, &path] {
    mutex_.AssertHeld();
    return part_ && absl::StrContains(path, *part_);
  };
  if (!hangs()) return;
  ++hanging_;
  changed_.SignalAll();
  while (hangs()) changed_.Wait(&mutex_);
  --hanging_;
}

absl::StatusOr<std::unique_ptr<WritableFile>> HangingFileSystem::NewWritableFile(const std::string& path) {
  Pass(path);
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_->NewWritableFile(path));
  return std::make_unique<Writer>(this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> HangingFileSystem::NewRandomAccessFile(const std::string& path) {
  Pass(path);
  return base_->NewRandomAccessFile(path);
}

absl::StatusOr<bool> HangingFileSystem::Exists(const std::string& path) {
  Pass(path);
  return base_->Exists(path);
}

absl::StatusOr<std::vector<std::string>> HangingFileSystem::ListDirectory(const std::string& path) {
  Pass(path);
  return base_->ListDirectory(path);
}

absl::Status HangingFileSystem::CreateDirectory(const std::string& path) {
  Pass(path);
  return base_->CreateDirectory(path);
}

absl::Status HangingFileSystem::Rename(const std::string& from, const std::string& to) {
  Pass(from);
  return base_->Rename(from, to);
}

absl::Status HangingFileSystem::Remove(const std::string& path) {
  Pass(path);
  return base_->Remove(path);
}

absl::Status HangingFileSystem::SyncDirectory(const std::string& path) {
  Pass(path);
  return base_->SyncDirectory(path);
}

absl::StatusOr<std::unique_ptr<FileSystem::Lock>> HangingFileSystem::LockFile(const std::string& path) {
  Pass(path);
  return base_->LockFile(path);
}

}  // namespace lockstep
