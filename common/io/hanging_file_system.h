#ifndef LOCKSTEP_COMMON_IO_HANGING_FILE_SYSTEM_H_
#define LOCKSTEP_COMMON_IO_HANGING_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/mutex.h"
#include "common/io/file_system.h"

namespace lockstep {

// Passes every call on to another file system, for tests. Told so, calls on some paths hang before they do anything,
// as on a network file system whose server is gone, until they are released. The other file system must outlive it,
// and it its files. Thread-safe.
class HangingFileSystem : public FileSystem {
 public:
  explicit HangingFileSystem(FileSystem* base) : base_(base) {}

  // Every call that begins from now on hangs if its path contains `part`; for files, if the path they were opened
  // with does.
  void Hang(const std::string& part) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls that hang go on, and none hangs any more.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until a call hangs.
  void AwaitHanging() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) override;

 private:
  class Writer;

  // Returns when calls on the path do not hang (any more).
  void Pass(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);

  FileSystem* const base_;
  Mutex mutex_;
  CondVar changed_;
  absl::optional<std::string> part_ ABSL_GUARDED_BY(mutex_);
  int hanging_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_HANGING_FILE_SYSTEM_H_
