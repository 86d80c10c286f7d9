#ifndef LOCKSTEP_COMMON_IO_TESTING_HANGING_FILE_SYSTEM_H_
#define LOCKSTEP_COMMON_IO_TESTING_HANGING_FILE_SYSTEM_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/testing/forwarding_file_system.h"

namespace lockstep {

// Forwards every call to another file system, for tests. On request, calls on some paths hang before they do anything,
// as on a network file system whose server is gone, until they are released. The other file system must outlive it,
// and it its files. Thread-safe.
class HangingFileSystem : public ForwardingFileSystem {
 public:
  explicit HangingFileSystem(FileSystem* base) : ForwardingFileSystem(base) {}

  // Every call that begins from now on hangs if its path contains `part`; for files, if the path they were opened
  // with does.
  void Hang(const std::string& part) ABSL_LOCKS_EXCLUDED(mutex_);
  // Hanging calls continue, and no more calls hang.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until a call hangs.
  void AwaitHanging() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns when calls on the path do not hang (any more).
  absl::Status Before(Operation operation, const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  absl::optional<std::string> part_ ABSL_GUARDED_BY(mutex_);
  int hanging_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_TESTING_HANGING_FILE_SYSTEM_H_
