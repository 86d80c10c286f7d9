#ifndef LOCKSTEP_COMMON_IO_TESTING_MEMORY_FILE_SYSTEM_H_
#define LOCKSTEP_COMMON_IO_TESTING_MEMORY_FILE_SYSTEM_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// A file system in memory, for tests. It tracks what has reached the device (contents by WritableFile::Sync, names by
// SyncDirectory), so that a test can simulate a power failure. "/" and "." exist; directories are durable immediately.
// Must outlive its files and locks. Thread-safe.
class MemoryFileSystem : public FileSystem {
 public:
  // The unsynced name changes (creations, renames, removals) that survive a power failure. All three cases occur on
  // real disks.
  enum class UnsyncedNames { kLost, kKept, kOnlyLastKept };

  MemoryFileSystem() = default;

  // Simulates a power failure: restores contents as of their last Sync, and names as of the last SyncDirectory of their
  // directory or as `names` specifies. Writes to files that are still open are lost. Locks are released.
  void DropUnsyncedData(UnsyncedNames names = UnsyncedNames::kLost) ABSL_LOCKS_EXCLUDED(mutex_);
  // Simulates a power failure that keeps a subset of the unsynced name changes and a prefix of each file's unsynced
  // data. `draw` chooses both: draw(n) returns one of 0 ... n - 1.
  void DropUnsyncedData(absl::FunctionRef<uint64_t(uint64_t n)> draw) ABSL_LOCKS_EXCLUDED(mutex_);

  // Inverts the bits of `mask` in one byte, which must exist.
  void FlipBits(const std::string& path, uint64_t offset, char mask) ABSL_LOCKS_EXCLUDED(mutex_);
  // Truncates a file to `size` bytes. The file must have at least that many.
  void Truncate(const std::string& path, uint64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the modification time like utimensat(2), which advances the change time. The file must exist.
  void SetModificationTime(const std::string& path, absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<bool> Exists(const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CreateDirectory(const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Rename(const std::string& from, const std::string& to) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Remove(const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SyncDirectory(const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<bool> IsLocked(const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Writer;
  class Reader;
  class HeldLock;

  struct File {
    std::string contents;
    std::string synced;
    uint64_t inode = 0;
    // Times in nanoseconds, on a clock that advances with every change.
    int64_t modified = 0;
    int64_t changed = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  std::shared_ptr<File> NewFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records a change of the file's contents.
  void Touch(File* file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Changes names in one step: each path is set to its file, or removed if the file is null.
  void Change(Names change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Apply(const Names& change, Names* names);
  // Restarts after a power failure. `names` are the remaining names; `contents_of` returns what remains of each file.
  void Restart(Names names, absl::FunctionRef<std::string(const File&)> contents_of)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes an empty directory.
  absl::Status RemoveDirectory(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // NotFound if the directory of `path` does not exist.
  absl::Status CheckDirectoryOf(const std::string& path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckDirectory(const std::string& path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  File* FindOrDie(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::set<std::string> directories_ ABSL_GUARDED_BY(mutex_) = {"/", "."};
  Names names_ ABSL_GUARDED_BY(mutex_);
  Names durable_names_ ABSL_GUARDED_BY(mutex_);
  // The unsynced name changes, oldest first; a null file is a removed name.
  std::vector<Names> unsynced_changes_ ABSL_GUARDED_BY(mutex_);
  // Number that identifies the lock held on each path.
  std::map<std::string, int64_t> locks_ ABSL_GUARDED_BY(mutex_);
  int64_t last_lock_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_inode_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_TESTING_MEMORY_FILE_SYSTEM_H_
