#ifndef LOCKSTEP_COMMON_IO_TESTING_HANGING_FILE_SYSTEM_H_
#define LOCKSTEP_COMMON_IO_TESTING_HANGING_FILE_SYSTEM_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/testing/forwarding_file_system.h"

namespace lockstep {

// A file system for tests that forwards every call to another one. On request, calls on some paths hang before they do
// anything, until they are released, as on a network file system whose server is gone. The other file system must
// outlive this one, which must outlive its files. Thread-safe.
class HangingFileSystem : public ForwardingFileSystem {
 public:
  explicit HangingFileSystem(FileSystem* base) : ForwardingFileSystem(base) {}

  // Makes every later call hang if its path contains `part`. The path of an open file is the one with which it was
  // opened.
  void Hang(const std::string& part) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets hanging calls continue and stops making calls hang.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until a call hangs.
  void AwaitHanging() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Blocks while calls on the path hang.
  absl::Status Before(Operation operation, const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  absl::optional<std::string> part_ ABSL_GUARDED_BY(mutex_);
  int hanging_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_TESTING_HANGING_FILE_SYSTEM_H_
