#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {
namespace {

// Maximum number of appended bytes to buffer.
constexpr size_t kBufferSize = 64 << 10;
// Linux transfers at most 2 GiB - 4 KiB per call.
constexpr size_t kLargestTransfer = 1 << 30;

absl::StatusCode CodeOfErrno(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EFBIG:
      return absl::StatusCode::kResourceExhausted;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case EISDIR:
    case ENOTEMPTY:
    case EXDEV:
      return absl::StatusCode::kFailedPrecondition;
    default:  // EIO, EBUSY, ESTALE, ETIMEDOUT, ...
      return absl::StatusCode::kInternal;
  }
}

absl::Status ErrnoToStatus(int error, absl::string_view action, absl::string_view path) {
  char text[128];
  const char* cause = ::strerror_r(error, text, sizeof(text));  // GNU's, which may not return `text`.
  return absl::Status(CodeOfErrno(error), absl::StrCat("cannot ", action, " ", path, ": ", cause));
}

absl::Status NotRegular(const std::string& path, absl::string_view kind) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot open ", path, ": it is ", kind, ", not a regular file; write what it delivers to a file"));
}

// Returns true for a pipe, a device or a socket, and for a link to an open file of a process, as /dev/stdout is.
bool IsSpecial(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return true;
  char target[64];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
  return size > 0 && absl::StartsWith(absl::string_view(target, static_cast<size_t>(size)), "/proc/");
}

// Calls open(2) and retries when a signal interrupts it. Returns -1 and sets errno on failure.
int OpenFile(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// Calls fcntl for an exclusive lock on a whole file. The lock belongs to the open file description, not to the process,
// so closing the file releases it, and the process's other open files do not share it. Unlike a flock lock, it can be
// queried without being taken.
int OfWholeFile(int fd, int command, struct flock* lock = nullptr) {
  struct flock whole = {};
  if (lock == nullptr) lock = &whole;
  int result;
  do {
    *lock = {};
    lock->l_type = F_WRLCK;
    lock->l_whence = SEEK_SET;
    result = ::fcntl(fd, command, lock);
  } while (result != 0 && errno == EINTR);
  return result;
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) { buffer_.reserve(kBufferSize); }
  ~PosixWritableFile() override {
    if (fd_ >= 0) Close().IgnoreError();  // The interface lets it hide the error.
  }

  absl::Status Append(absl::string_view data) override {
    if (fd_ < 0) return Closed();
    if (buffer_.size() + data.size() > kBufferSize) RETURN_IF_ERROR(Flush());
    if (data.size() <= kBufferSize) {
      buffer_.append(data.data(), data.size());
      return absl::OkStatus();
    }
    size_t written = 0;
    const absl::Status status = Write(data, &written);
    if (status.ok()) {
      offset_ += written;
    } else if (written > 0 && (::ftruncate(fd_, offset_) != 0 || ::lseek(fd_, offset_, SEEK_SET) < 0)) {
      return absl::Status(status.code(), absl::StrCat(status.message(), "; the file is torn at byte ", offset_));
    }
    return status;
  }

  absl::Status Flush() override {
    if (fd_ < 0) return Closed();
    size_t written = 0;
    const absl::Status status = Write(buffer_, &written);
    offset_ += written;
    buffer_.erase(0, written);
    return status;
  }

  absl::Status Sync() override {
    RETURN_IF_ERROR(Flush());
    return ::fsync(fd_) == 0 ? absl::OkStatus() : ErrnoToStatus(errno, "sync", path_);
  }

  absl::Status Close() override {
    if (fd_ < 0) return Closed();
    absl::Status status = Flush();
    // Never retried, because Linux has released the descriptor even if close is interrupted.
    if (::close(fd_) != 0 && errno != EINTR && status.ok()) status = ErrnoToStatus(errno, "close", path_);
    fd_ = -1;
    return status;
  }

 private:
  absl::Status Closed() const {
    return absl::FailedPreconditionError(absl::StrCat("cannot write to ", path_, ": it is closed"));
  }

  // Sets `*written` to the number of bytes written, even on error.
  absl::Status Write(absl::string_view data, size_t* written) {
    while (*written < data.size()) {
      const size_t n = std::min(data.size() - *written, kLargestTransfer);
      const ssize_t done = ::write(fd_, data.data() + *written, n);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return ErrnoToStatus(errno, "write to", path_);
      *written += done;
    }
    return absl::OkStatus();
  }

  const std::string path_;
  int fd_;
  std::string buffer_;
  // Number of bytes in the file, excluding buffer_.
  off_t offset_ = 0;
};

class PosixRandomAccessFile : public RandomAccessFile {
 public:
  PosixRandomAccessFile(std::string path, int fd, const struct stat& info)
      : path_(std::move(path)), fd_(fd), info_(info) {}
  ~PosixRandomAccessFile() override { ::close(fd_); }

  uint64_t size() const override { return info_.st_size; }
  absl::Time modification_time() const override { return absl::TimeFromTimespec(info_.st_mtim); }
  uint64_t inode() const override { return info_.st_ino; }
  absl::Time change_time() const override { return absl::TimeFromTimespec(info_.st_ctim); }

  absl::Status Read(uint64_t offset, size_t n, char* out) const override {
    size_t done = 0;
    while (done < n) {
      const ssize_t got = ::pread(fd_, out + done, std::min(n - done, kLargestTransfer), offset + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        const int error = errno;
        const absl::Status status = ErrnoToStatus(error, "read from", path_);
        return error == EIO ? absl::DataLossError(status.message()) : status;
      }
      if (got == 0) {
        return absl::DataLossError(absl::StrCat("cannot read bytes ", offset, " to ", offset + n, " of ", path_,
                                                ": it ends at byte ", offset + done));
      }
      done += got;
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const int fd_;
  const struct stat info_;
};

// Tries to write this process's name into the lock file.
void NameHolder(int fd) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const std::string holder = absl::StrCat("process ", getpid(), " on ", host, "\n");
  if (::ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd, holder.data(), holder.size(), 0);
}

// Returns the name that the lock's holder has written.
std::string HolderOf(int fd) {
  char holder[300];
  const ssize_t size = ::pread(fd, holder, sizeof(holder), 0);
  const absl::string_view text(holder, std::max<ssize_t>(0, size));
  return size <= 0 ? "another process" : absl::CHexEscape(absl::StripAsciiWhitespace(text));
}

class PosixLock : public FileSystem::Lock {
 public:
  PosixLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixLock() override { ::close(fd_); }

  absl::Status Check() const override {
    struct stat held, present;
    if (::fstat(fd_, &held) != 0) return ErrnoToStatus(errno, "look at the lock", path_);
    if (::stat(path_.c_str(), &present) != 0) {
      const absl::Status status = ErrnoToStatus(errno, "look at the lock", path_);
      return absl::IsNotFound(status) ? absl::OkStatus() : status;
    }
    if (held.st_dev == present.st_dev && held.st_ino == present.st_ino) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the lock ", path_, " was replaced by another file"));
  }

 private:
  const std::string path_;
  const int fd_;
};

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    const int fd = OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0) return ErrnoToStatus(errno, "create", path);
    return std::make_unique<PosixWritableFile>(path, fd);
  }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override {
    // Without O_NONBLOCK, opening a pipe waits for a writer. It changes nothing for a regular file.
    const int fd = OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENXIO) return NotRegular(path, "a socket or a device");
    if (fd < 0) return ErrnoToStatus(errno, "open", path);
    struct stat info;
    const int error = ::fstat(fd, &info) == 0 ? 0 : errno;
    if (error == 0 && S_ISREG(info.st_mode)) return std::make_unique<PosixRandomAccessFile>(path, fd, info);
    ::close(fd);
    if (error != 0) return ErrnoToStatus(error, "open", path);
    if (S_ISDIR(info.st_mode)) return ErrnoToStatus(EISDIR, "open", path);
    return NotRegular(path, S_ISFIFO(info.st_mode) ? "a pipe" : "a device");
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    if (::access(path.c_str(), F_OK) == 0) return true;
    const absl::Status status = ErrnoToStatus(errno, "look for", path);
    if (absl::IsNotFound(status)) return false;
    return status;
  }

  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    DIR* const directory = ::opendir(path.c_str());
    if (directory == nullptr) return ErrnoToStatus(errno, "list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const struct dirent* entry = ::readdir(directory)) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const int error = errno;
    ::closedir(directory);
    if (error != 0) return ErrnoToStatus(error, "list", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status CreateDirectory(const std::string& path) override {
    absl::string_view name = path;
    while (name.size() > 1 && name.back() == '/') name.remove_suffix(1);
    const std::string parent(Dirname(name));
    int result = ::mkdir(path.c_str(), 0755);
    if (result != 0 && errno == ENOENT && parent != name && !name.empty()) {
      RETURN_IF_ERROR(CreateDirectory(parent));
      result = ::mkdir(path.c_str(), 0755);
    }
    if (result == 0) {
      const absl::Status synced = SyncDirectory(parent);
      // A process may create a directory without permission to open its parent.
      return absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;
    }
    const int error = errno;
    struct stat info;
    if (error == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return absl::OkStatus();
    return ErrnoToStatus(error, "create the directory", path);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    // Run by root, rename(2) would take /dev/null or /dev/stdout from every program of the machine.
    if (IsSpecial(to)) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot replace ", to, ": it is a pipe or a device, not a regular file"));
    }
    if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return ErrnoToStatus(errno, "rename", absl::StrCat(from, " to ", to));
  }

  absl::Status Remove(const std::string& path) override {
    // std::remove also removes an empty directory. POSIX allows two error codes for a directory that is not empty.
    if (std::remove(path.c_str()) == 0) return absl::OkStatus();
    return ErrnoToStatus(errno == EEXIST ? ENOTEMPTY : errno, "remove", path);
  }

  absl::Status SyncDirectory(const std::string& path) override {
    const int fd = OpenFile(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return ErrnoToStatus(errno, "open", path);
    // Some file systems cannot sync a directory and return EINVAL. Nothing more can be done there.
    const int error = ::fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    ::close(fd);
    return error == 0 ? absl::OkStatus() : ErrnoToStatus(error, "sync", path);
  }

  absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) override {
    const int fd = OpenFile(path, O_RDWR | O_CREAT);
    if (fd < 0) return ErrnoToStatus(errno, "create", path);
    if (OfWholeFile(fd, F_OFD_SETLK) != 0) {
      const int error = errno;
      const std::string holder = HolderOf(fd);
      ::close(fd);
      if (error == EAGAIN || error == EACCES) {
        return absl::FailedPreconditionError(absl::StrCat("cannot lock ", path, ": ", holder, " holds it"));
      }
      return ErrnoToStatus(error, "lock", path);
    }
    NameHolder(fd);
    return std::make_unique<PosixLock>(path, fd);
  }

  absl::StatusOr<bool> IsLocked(const std::string& path) override {
    const int fd = OpenFile(path, O_RDONLY);
    if (fd < 0 && errno == ENOENT) return false;
    if (fd < 0) return ErrnoToStatus(errno, "open", path);
    struct flock found;
    const int error = OfWholeFile(fd, F_OFD_GETLK, &found) == 0 ? 0 : errno;
    ::close(fd);
    if (error != 0) return ErrnoToStatus(error, "look at the lock", path);
    return found.l_type != F_UNLCK;
  }
};

}  // namespace

FileSystem* FileSystem::Real() {
  static FileSystem* const file_system = new PosixFileSystem;
  return file_system;
}

}  // namespace lockstep
