#include "lockstep/common/io/testing/memory_file_system.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Turns "a//b/./c/" into "a/b/c", so that each path has one spelling.
std::string Normalized(const std::string& path) {
  const bool may_change = absl::StrContains(path, "//") || absl::StrContains(path, "./") || absl::EndsWith(path, "/") ||
                          absl::EndsWith(path, ".");
  if (!path.empty() && !may_change) return path;
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part != ".") parts.push_back(part);
  }
  const std::string joined = absl::StrJoin(parts, "/");
  if (absl::StartsWith(path, "/")) return absl::StrCat("/", joined);
  return joined.empty() ? "." : joined;
}

absl::Status NotFound(absl::string_view action, absl::string_view path) {
  return absl::NotFoundError(absl::StrCat("cannot ", action, " ", path, ": No such file or directory"));
}

}  // namespace

class MemoryFileSystem::Writer : public WritableFile {
 public:
  Writer(MemoryFileSystem* fs, std::string path, std::shared_ptr<File> file)
      : fs_(fs), path_(std::move(path)), file_(std::move(file)) {}
  ~Writer() override {
    if (!closed_) Flush().IgnoreError();  // Cannot fail while open.
  }

  absl::Status Append(absl::string_view data) override {
    if (closed_) return Closed();
    buffer_.append(data.data(), data.size());
    return absl::OkStatus();
  }
  absl::Status Flush() override {
    if (closed_) return Closed();
    MutexLock lock(&fs_->mutex_);
    if (!buffer_.empty()) fs_->Touch(file_.get());
    file_->contents += buffer_;
    buffer_.clear();
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(Flush());
    MutexLock lock(&fs_->mutex_);
    file_->synced = file_->contents;
    return absl::OkStatus();
  }
  absl::Status Close() override {
    RETURN_IF_ERROR(Flush());
    closed_ = true;
    return absl::OkStatus();
  }

 private:
  absl::Status Closed() const {
    return absl::FailedPreconditionError(absl::StrCat("cannot write to ", path_, ": it is closed"));
  }

  MemoryFileSystem* const fs_;
  const std::string path_;
  const std::shared_ptr<File> file_;
  std::string buffer_;
  bool closed_ = false;
};

class MemoryFileSystem::Reader : public RandomAccessFile {
 public:
  Reader(MemoryFileSystem* fs, std::string path, std::shared_ptr<File> file)
      : fs_(fs),
        path_(std::move(path)),
        file_(std::move(file)),
        size_(file_->contents.size()),
        inode_(file_->inode),
        modification_time_(absl::FromUnixNanos(file_->modified)),
        change_time_(absl::FromUnixNanos(file_->changed)) {}

  uint64_t size() const override { return size_; }
  absl::Time modification_time() const override { return modification_time_; }
  uint64_t inode() const override { return inode_; }
  absl::Time change_time() const override { return change_time_; }
  absl::Status Read(uint64_t offset, size_t n, char* out) const override {
    MutexLock lock(&fs_->mutex_);
    const std::string& contents = file_->contents;
    if (offset > contents.size() || n > contents.size() - offset) {
      return absl::DataLossError(absl::StrCat("cannot read bytes ", offset, " to ", offset + n, " of ", path_,
                                              ": it ends at byte ", contents.size()));
    }
    if (n > 0) std::memcpy(out, contents.data() + offset, n);
    return absl::OkStatus();
  }

 private:
  MemoryFileSystem* const fs_;
  const std::string path_;
  const std::shared_ptr<File> file_;
  const uint64_t size_;
  const uint64_t inode_;
  const absl::Time modification_time_;
  const absl::Time change_time_;
};

class MemoryFileSystem::HeldLock : public FileSystem::Lock {
 public:
  HeldLock(MemoryFileSystem* fs, std::string path, int64_t number) : fs_(fs), path_(std::move(path)), number_(number) {}
  absl::Status Check() const override {
    MutexLock lock(&fs_->mutex_);
    const auto it = fs_->locks_.find(path_);
    const bool held = it != fs_->locks_.end() && it->second == number_;
    if (held || fs_->names_.count(path_) == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the lock ", path_, " was replaced by another file"));
  }
  ~HeldLock() override {
    MutexLock lock(&fs_->mutex_);
    const auto it = fs_->locks_.find(path_);
    if (it != fs_->locks_.end() && it->second == number_) fs_->locks_.erase(it);
  }

 private:
  MemoryFileSystem* const fs_;
  const std::string path_;
  const int64_t number_;
};

void MemoryFileSystem::DropUnsyncedData(UnsyncedNames names) {
  MutexLock lock(&mutex_);
  Names left = names == UnsyncedNames::kKept ? names_ : durable_names_;
  if (names == UnsyncedNames::kOnlyLastKept && !unsynced_changes_.empty()) Apply(unsynced_changes_.back(), &left);
  Restart(std::move(left), [](const File& file) { return file.synced; });
}

void MemoryFileSystem::DropUnsyncedData(absl::FunctionRef<uint64_t(uint64_t)> draw) {
  MutexLock lock(&mutex_);
  Names left = durable_names_;
  for (const Names& change : unsynced_changes_) {
    if (draw(2) == 0) Apply(change, &left);
  }
  Restart(std::move(left), [&draw](const File& file) {
    if (file.contents == file.synced) return file.synced;
    // After a power failure, a file that was truncated and rewritten may have its old contents or part of the new ones.
    const bool extended = absl::StartsWith(file.contents, file.synced);
    if (!extended && draw(2) == 0) return file.synced;
    const size_t least = extended ? file.synced.size() : 0;
    return file.contents.substr(0, least + draw(file.contents.size() - least + 1));
  });
}

void MemoryFileSystem::Restart(Names names, absl::FunctionRef<std::string(const File&)> contents_of) {
  // Copies the files, so that writes to files still open are lost.
  for (auto& [path, file] : names) {
    file = std::make_shared<File>(*file);
    file->contents = file->synced = contents_of(*file);
    Touch(file.get());
  }
  names_ = durable_names_ = std::move(names);
  unsynced_changes_.clear();
  locks_.clear();
}

void MemoryFileSystem::SetModificationTime(const std::string& path, absl::Time time) {
  MutexLock lock(&mutex_);
  File* const file = FindOrDie(path);
  Touch(file);
  file->modified = absl::ToUnixNanos(time);
}

std::shared_ptr<MemoryFileSystem::File> MemoryFileSystem::NewFile() {
  auto file = std::make_shared<File>();
  file->inode = ++last_inode_;
  return file;
}

void MemoryFileSystem::Touch(File* file) { file->modified = file->changed = ++changes_; }

void MemoryFileSystem::Change(Names change) {
  Apply(change, &names_);
  unsynced_changes_.push_back(std::move(change));
}

void MemoryFileSystem::Apply(const Names& change, Names* names) {
  for (const auto& [path, file] : change) {
    if (file == nullptr) {
      names->erase(path);
    } else {
      (*names)[path] = file;
    }
  }
}

void MemoryFileSystem::FlipBits(const std::string& path, uint64_t offset, char mask) {
  MutexLock lock(&mutex_);
  File* const file = FindOrDie(path);
  CHECK_LT(offset, file->contents.size()) << path;
  file->contents[offset] ^= mask;
  Touch(file);
}

void MemoryFileSystem::Truncate(const std::string& path, uint64_t size) {
  MutexLock lock(&mutex_);
  File* const file = FindOrDie(path);
  CHECK_LE(size, file->contents.size()) << path;
  file->contents.resize(size);
  Touch(file);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::NewWritableFile(const std::string& path) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckDirectoryOf(path));
  if (CheckDirectory(path).ok()) {
    return absl::FailedPreconditionError(absl::StrCat("cannot create ", path, ": Is a directory"));
  }
  const auto it = names_.find(Normalized(path));
  std::shared_ptr<File> file = it == names_.end() ? NewFile() : it->second;
  // Truncating keeps the file, so its synced contents return after a power failure, as on a disk.
  file->contents.clear();
  if (it == names_.end()) Change({{Normalized(path), file}});
  Touch(file.get());
  return std::make_unique<Writer>(this, path, file);
}

absl::StatusOr<std::unique_ptr<RandomAccessFile>> MemoryFileSystem::NewRandomAccessFile(const std::string& path) {
  MutexLock lock(&mutex_);
  const auto it = names_.find(Normalized(path));
  if (it == names_.end()) return NotFound("open", path);
  return std::make_unique<Reader>(this, path, it->second);
}

absl::StatusOr<bool> MemoryFileSystem::Exists(const std::string& path) {
  MutexLock lock(&mutex_);
  return names_.count(Normalized(path)) > 0 || CheckDirectory(path).ok();
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::ListDirectory(const std::string& path) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckDirectory(path));
  const std::string directory = Normalized(path);
  std::vector<std::string> listed;
  for (const auto& [name, file] : names_) {
    if (Dirname(name) == directory) listed.emplace_back(Basename(name));
  }
  for (const std::string& name : directories_) {
    if (name != directory && name != "." && Dirname(name) == directory) listed.emplace_back(Basename(name));
  }
  std::sort(listed.begin(), listed.end());
  return listed;
}

absl::Status MemoryFileSystem::CreateDirectory(const std::string& path) {
  MutexLock lock(&mutex_);
  std::string directory = Normalized(path);
  while (directories_.insert(directory).second) {
    if (names_.count(directory) > 0) {
      directories_.erase(directory);
      return absl::AlreadyExistsError(
          absl::StrCat("cannot create the directory ", path, ": ", directory, " is a file"));
    }
    directory = std::string(Dirname(directory));
  }
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(&mutex_);
  const auto it = names_.find(Normalized(from));
  if (it == names_.end()) return NotFound("rename", absl::StrCat(from, " to ", to));
  RETURN_IF_ERROR(CheckDirectoryOf(to));
  it->second->changed = ++changes_;
  if (Normalized(from) != Normalized(to)) Change({{Normalized(from), nullptr}, {Normalized(to), it->second}});
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Remove(const std::string& path) {
  MutexLock lock(&mutex_);
  if (names_.count(Normalized(path)) == 0) return RemoveDirectory(path);
  locks_.erase(Normalized(path));  // The lock stays with the file, which has no path any more.
  Change({{Normalized(path), nullptr}});
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::RemoveDirectory(const std::string& path) {
  const std::string directory = Normalized(path);
  if (directories_.count(directory) == 0) return NotFound("remove", path);
  const std::string below = absl::StrCat(directory, "/");
  const auto file = names_.lower_bound(below);
  const auto inner = directories_.lower_bound(below);
  if ((file != names_.end() && absl::StartsWith(file->first, below)) ||
      (inner != directories_.end() && absl::StartsWith(*inner, below))) {
    return absl::FailedPreconditionError(absl::StrCat("cannot remove ", path, ": Directory not empty"));
  }
  // A power failure must not restore files that were durable in the removed directory.
  const auto forget = [&below](Names* names) {
    const auto begin = names->lower_bound(below);
    auto end = begin;
    while (end != names->end() && absl::StartsWith(end->first, below)) ++end;
    names->erase(begin, end);
  };
  forget(&durable_names_);
  for (Names& change : unsynced_changes_) forget(&change);
  directories_.erase(directory);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::SyncDirectory(const std::string& path) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckDirectory(path));
  const std::string directory = Normalized(path);
  const auto forget = [&directory](Names* names) {
    for (auto it = names->begin(); it != names->end();) {
      it = Dirname(it->first) == directory ? names->erase(it) : std::next(it);
    }
    return names->empty();
  };
  forget(&durable_names_);
  unsynced_changes_.erase(std::remove_if(unsynced_changes_.begin(), unsynced_changes_.end(),
                                         [&forget](Names& change) { return forget(&change); }),
                          unsynced_changes_.end());
  for (const auto& [name, file] : names_) {
    if (Dirname(name) == directory) durable_names_[name] = file;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileSystem::Lock>> MemoryFileSystem::LockFile(const std::string& path) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckDirectoryOf(path));
  const std::string name = Normalized(path);
  if (!locks_.emplace(name, last_lock_ + 1).second) {
    return absl::FailedPreconditionError(absl::StrCat("cannot lock ", path, ": another process holds it"));
  }
  if (names_.count(name) == 0) Change({{name, NewFile()}});
  return std::make_unique<HeldLock>(this, name, ++last_lock_);
}

absl::StatusOr<bool> MemoryFileSystem::IsLocked(const std::string& path) {
  MutexLock lock(&mutex_);
  return locks_.count(Normalized(path)) > 0;
}

absl::Status MemoryFileSystem::CheckDirectoryOf(const std::string& path) const {
  return CheckDirectory(std::string(Dirname(Normalized(path))));
}

absl::Status MemoryFileSystem::CheckDirectory(const std::string& path) const {
  if (directories_.count(Normalized(path)) > 0) return absl::OkStatus();
  return NotFound("open the directory", path);
}

MemoryFileSystem::File* MemoryFileSystem::FindOrDie(const std::string& path) {
  const auto it = names_.find(Normalized(path));
  CHECK(it != names_.end()) << "no file " << path;
  return it->second.get();
}

}  // namespace lockstep
