#ifndef LOCKSTEP_COMMON_IO_MEMORY_FILE_SYSTEM_H_
#define LOCKSTEP_COMMON_IO_MEMORY_FILE_SYSTEM_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/io/file_system.h"

namespace lockstep {

// A file system in memory, for tests. It remembers what has reached the device: contents by
// WritableFile::Sync, names by SyncDirectory, so that a test can cut the power. "/" and "." exist;
// directories are durable at once. Must outlive its files and locks. Thread-safe.
class MemoryFileSystem : public FileSystem {
 public:
  // What a power cut leaves of the changes of names (creations, renames, removals) that were not synced.
  // All three happen.
  enum class UnsyncedNames { kLost, kKept, kOnlyLastKept };

  MemoryFileSystem() = default;

  // The power cut: contents go back to their last Sync, and names to the last SyncDirectory of their
  // directory, or as `names` says. Files still open write to nowhere. Locks end.
  void DropUnsyncedData(UnsyncedNames names = UnsyncedNames::kLost) ABSL_LOCKS_EXCLUDED(mutex_);

  // Inverts the bits of `mask` in one byte. The file must have it.
  void FlipBits(const std::string& path, uint64_t offset, char mask) ABSL_LOCKS_EXCLUDED(mutex_);
  // Cuts a file to `size` bytes. The file must have them.
  void Truncate(const std::string& path, uint64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  // As utimensat(2): its change time moves on. There must be such a file.
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

 private:
  class Writer;
  class Reader;
  class HeldLock;

  struct File {
    std::string contents;
    std::string synced;
    uint64_t inode = 0;
    // Nanoseconds on a clock that ticks with every change.
    int64_t modified = 0;
    int64_t changed = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  std::shared_ptr<File> NewFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its contents have changed.
  void Touch(File* file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes one change of names: each path gets its file, null for none.
  void Change(Names change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Apply(const Names& change, Names* names);
  // NotFound when the directory of `path` does not exist.
  absl::Status CheckDirectoryOf(const std::string& path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckDirectory(const std::string& path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  File* FindOrDie(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::set<std::string> directories_ ABSL_GUARDED_BY(mutex_) = {"/", "."};
  Names names_ ABSL_GUARDED_BY(mutex_);
  Names durable_names_ ABSL_GUARDED_BY(mutex_);
  // Of the last change, what is not synced; null files are names that went.
  Names last_change_ ABSL_GUARDED_BY(mutex_);
  // Path to the number of the lock that holds it.
  std::map<std::string, int64_t> locks_ ABSL_GUARDED_BY(mutex_);
  int64_t last_lock_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_inode_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_MEMORY_FILE_SYSTEM_H_
