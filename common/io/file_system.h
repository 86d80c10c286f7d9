#ifndef LOCKSTEP_COMMON_IO_FILE_SYSTEM_H_
#define LOCKSTEP_COMMON_IO_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

// Errors of all calls name the path and the cause: NotFound, PermissionDenied, ResourceExhausted (disk full),
// AlreadyExists, FailedPrecondition, or Internal: an I/O error. Only NotFound says that something is absent; after any
// other error that is unknown.

// A file being written from its start. Not thread-safe. Destroying without Close loses nothing
// that was appended, but hides its error.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // An Append that fails leaves nothing of `data` in the file, so that it may be tried again.
  virtual absl::Status Append(absl::string_view data) = 0;
  // Hands what is buffered to the operating system. After an error the rest is kept for the next call.
  virtual absl::Status Flush() = 0;
  // Flush, then wait until it is on the device.
  virtual absl::Status Sync() = 0;
  // Flush and close; call once.
  virtual absl::Status Close() = 0;
};

// Positional reads. Thread-safe.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  virtual uint64_t size() const = 0;
  // When the contents last changed, as of when the file was opened. Distinguishes two states of a file.
  virtual absl::Time modification_time() const = 0;
  // Which file of its file system it is (the inode's number), and when anything about it last changed, contents, name
  // or modification time (ctime), which cannot be set; both as of when it was opened. They distinguish a file from
  // one to which its modification time was copied (touch -r, cp -p, rsync -t).
  virtual uint64_t inode() const = 0;
  virtual absl::Time change_time() const = 0;
  // Reads exactly `n` bytes at `offset` into `out`. DataLoss, as if their checksum were wrong, when the file ends
  // before (it may have become shorter since it was opened), or when the device cannot read them (EIO).
  virtual absl::Status Read(uint64_t offset, size_t n, char* out) const = 0;
};

// Files, as every other class sees them. Thread-safe.
class FileSystem {
 public:
  // The machine's files; never destroyed.
  static FileSystem* Real();

  virtual ~FileSystem() = default;

  // Truncates an existing file.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) = 0;
  // False only when it is certain that there is neither a file nor a directory.
  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;
  // Names, not paths, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;
  // With parents, and durable when it returns; OK when it exists.
  virtual absl::Status CreateDirectory(const std::string& path) = 0;
  // Atomically replaces `to`.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Makes renames and removals in the directory durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Takes an exclusive lock that ends with the returned object or the process, however it dies.
  // FailedPrecondition when another process (or another lock object) holds it; the message names process and host, as
  // the holder has written them into the file.
  class Lock {
   public:
    virtual ~Lock() = default;
    // FailedPrecondition when its path now leads to another file, which another process may have locked. OK when it
    // leads to none. A lock that the server of a network file system has forgotten is not noticed.
    virtual absl::Status Check() const = 0;
  };
  virtual absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) = 0;
  // Whether somebody holds the lock at this moment. Takes nothing and makes no file: whoever takes the lock meanwhile
  // gets it.
  virtual absl::StatusOr<bool> IsLocked(const std::string& path) = 0;
};

// Whole small files. ResourceExhausted for one of more than 1 GiB.
absl::StatusOr<std::string> ReadFile(FileSystem* fs, const std::string& path);
// Writes "<path>.tmp", syncs, renames it over `path` and syncs the directory: readers see the old or
// the new contents, never less. `replaced`, which may be null: whether they see the new ones, with an error, too; after
// a loss of power they may then see either.
absl::Status WriteFileAtomically(FileSystem* fs, const std::string& path, absl::string_view data,
                                 bool* replaced = nullptr);

// "a/b" and "c" to "a/b/c"; an absolute second path stands alone.
std::string JoinPath(absl::string_view directory, absl::string_view name);
absl::string_view Basename(absl::string_view path);
absl::string_view Dirname(absl::string_view path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_FILE_SYSTEM_H_
