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

// All errors name the path and the cause: NotFound, PermissionDenied, ResourceExhausted (disk full), AlreadyExists,
// FailedPrecondition, Internal (I/O error), or DataLoss from reads. Only NotFound means that something is absent; after
// any other error it may exist.

// A file written from its start. Destroying it without Close loses no appended data, but hides errors. Not thread-safe.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Appends `data`. A failed Append leaves nothing of `data` in the file, so it may be retried.
  virtual absl::Status Append(absl::string_view data) = 0;
  // Hands buffered data to the operating system. After an error, the data that was not written is kept for the next
  // call.
  virtual absl::Status Flush() = 0;
  // Flushes and waits until the data is on the device.
  virtual absl::Status Sync() = 0;
  // Flushes and closes; call once.
  virtual absl::Status Close() = 0;
};

// Positional reads. Thread-safe.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  virtual uint64_t size() const = 0;
  // Time at which the contents last changed, as of when the file was opened. Serves to tell two states of a file apart.
  virtual absl::Time modification_time() const = 0;
  // The inode number, and the change time (ctime): the time at which the file's contents, name or modification time
  // last changed, which cannot be set. Both are as of when the file was opened. They distinguish a file from one with a
  // copied modification time (touch -r, cp -p, rsync -t).
  virtual uint64_t inode() const = 0;
  virtual absl::Time change_time() const = 0;
  // Reads exactly `n` bytes at `offset` into `out`. DataLoss, as for a wrong checksum, if the file ends earlier (it may
  // have been shortened since it was opened) or the device cannot read them (EIO).
  virtual absl::Status Read(uint64_t offset, size_t n, char* out) const = 0;
};

// The interface through which all other classes access files. Thread-safe.
class FileSystem {
 public:
  // Returns the machine's own file system, which is never destroyed.
  static FileSystem* Real();

  virtual ~FileSystem() = default;

  // Truncates an existing file.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) = 0;
  // Returns false only if neither a file nor a directory exists at the path; returns an error if that is unknown.
  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;
  // Returns the sorted names (not paths) of the entries, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) = 0;
  // Also creates parent directories. The directory is durable on return. Returns OK if it already exists.
  virtual absl::Status CreateDirectory(const std::string& path) = 0;
  // Atomically replaces `to`. FailedPrecondition if `to` is a pipe or a device, or a link such as /dev/stdout.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Makes renames and removals in the directory durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Acquires an exclusive lock, which is held until the returned object is destroyed or the process ends, even if it is
  // killed. FailedPrecondition if another process (or another Lock object) holds the lock; the message names the
  // process and host that the holder has written into the file.
  class Lock {
   public:
    virtual ~Lock() = default;
    // Returns FailedPrecondition if the path now names a different file, which another process may have locked, and OK
    // if it names no file. Does not detect that the server of a network file system has forgotten the lock.
    virtual absl::Status Check() const = 0;
  };
  virtual absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) = 0;
  // Returns true if the lock is currently held. Neither takes the lock nor creates a file, so the answer may be
  // outdated on return.
  virtual absl::StatusOr<bool> IsLocked(const std::string& path) = 0;
};

// Reads a whole small file. ResourceExhausted if it exceeds 1 GiB.
absl::StatusOr<std::string> ReadFile(FileSystem* fs, const std::string& path);
// Writes "<path>.tmp", syncs it, renames it over `path` and syncs the directory, so that readers see either the
// complete old or the complete new contents. Sets `*replaced`, unless `replaced` is null, to whether readers see the
// new contents, even if an error is returned; after a power failure they may then see either.
absl::Status WriteFileAtomically(FileSystem* fs, const std::string& path, absl::string_view data,
                                 bool* replaced = nullptr);

// Joins "a/b" and "c" into "a/b/c"; an absolute second path is returned unchanged.
std::string JoinPath(absl::string_view directory, absl::string_view name);
absl::string_view Basename(absl::string_view path);
absl::string_view Dirname(absl::string_view path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_FILE_SYSTEM_H_
