#include "lockstep/common/io/testing/forwarding_file_system.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

class ForwardingFileSystem::Writer : public WritableFile {
 public:
  Writer(ForwardingFileSystem* fs, std::string path, std::unique_ptr<WritableFile> base)
      : fs_(fs), path_(std::move(path)), base_(std::move(base)) {}

  absl::Status Append(absl::string_view data) override { return fs_->Append(path_, data, base_.get()); }
  absl::Status Flush() override {
    RETURN_IF_ERROR(fs_->Before(Operation::kFlush, path_));
    return base_->Flush();
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(fs_->Before(Operation::kSync, path_));
    return base_->Sync();
  }
  absl::Status Close() override {
    RETURN_IF_ERROR(fs_->Before(Operation::kClose, path_));
    return base_->Close();
  }

 private:
  ForwardingFileSystem* const fs_;
  const std::string path_;
  const std::unique_ptr<WritableFile> base_;
};

class ForwardingFileSystem::Reader : public RandomAccessFile {
 public:
  Reader(ForwardingFileSystem* fs, std::string path, std::unique_ptr<RandomAccessFile> base)
      : fs_(fs), path_(std::move(path)), base_(std::move(base)) {}

  uint64_t size() const override { return base_->size(); }
  absl::Time modification_time() const override { return base_->modification_time(); }
  uint64_t inode() const override { return base_->inode(); }
  absl::Time change_time() const override { return base_->change_time(); }
  absl::Status Read(uint64_t offset, size_t n, char* out) const override {
    RETURN_IF_ERROR(fs_->Before(Operation::kRead, path_));
    return base_->Read(offset, n, out);
  }

 private:
  ForwardingFileSystem* const fs_;
  const std::string path_;
  const std::unique_ptr<RandomAccessFile> base_;
};

absl::Status ForwardingFileSystem::Append(const std::string& path, absl::string_view data, WritableFile* file) {
  RETURN_IF_ERROR(Before(Operation::kAppend, path));
  return file->Append(data);
}

absl::StatusOr<std::unique_ptr<WritableFile>> ForwardingFileSystem::NewWritableFile(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kCreate, path));
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_->NewWritableFile(path));
  return std::make_unique<Writer>(this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> ForwardingFileSystem::NewRandomAccessFile(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kOpen, path));
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, base_->NewRandomAccessFile(path));
  return std::make_unique<Reader>(this, path, std::move(file));
}

absl::StatusOr<bool> ForwardingFileSystem::Exists(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kExists, path));
  return base_->Exists(path);
}

absl::StatusOr<std::vector<std::string>> ForwardingFileSystem::ListDirectory(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kList, path));
  return base_->ListDirectory(path);
}

absl::Status ForwardingFileSystem::CreateDirectory(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kCreateDirectory, path));
  return base_->CreateDirectory(path);
}

absl::Status ForwardingFileSystem::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Before(Operation::kRename, absl::StrCat(from, " to ", to)));
  return base_->Rename(from, to);
}

absl::Status ForwardingFileSystem::Remove(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kRemove, path));
  return base_->Remove(path);
}

absl::Status ForwardingFileSystem::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kSyncDirectory, path));
  return base_->SyncDirectory(path);
}

absl::StatusOr<std::unique_ptr<FileSystem::Lock>> ForwardingFileSystem::LockFile(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kLock, path));
  return base_->LockFile(path);
}

absl::StatusOr<bool> ForwardingFileSystem::IsLocked(const std::string& path) {
  RETURN_IF_ERROR(Before(Operation::kExists, path));
  return base_->IsLocked(path);
}

}  // namespace lockstep
