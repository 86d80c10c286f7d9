#ifndef LOCKSTEP_COMMON_IO_TESTING_FAULTY_FILE_SYSTEM_H_
#define LOCKSTEP_COMMON_IO_TESTING_FAULTY_FILE_SYSTEM_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/io/testing/forwarding_file_system.h"

namespace lockstep {

// A file system for tests that forwards calls to another one and makes chosen calls fail. Counts operations: every call
// that inspects, reads or changes files, including calls on open files, but not destructors. A test can thus run once,
// read the count, and then fail or kill the same run at each operation. The other file system must outlive this one,
// which must outlive its files. Thread-safe.
class FaultyFileSystem : public ForwardingFileSystem {
 public:
  explicit FaultyFileSystem(FileSystem* base) : ForwardingFileSystem(base) {}

  // Number of operations tried so far, including failed ones.
  int64_t operations() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the n-th operation from now fail with `error`; 1 is the next one.
  void FailOperation(int64_t n, absl::Status error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Like FailOperation, but every later operation fails too.
  void FailFrom(int64_t n, absl::Status error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Fails every later operation of this kind whose path, or whose old or new name in a rename, contains `part`.
  void FailMatching(Operation operation, std::string part, absl::Status error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Simulates a process that is killed after n more operations: later ones do not reach the files, but if the next one
  // is an Append, it still writes half of its data.
  void KillAfter(int64_t n) ABSL_LOCKS_EXCLUDED(mutex_);
  // Limits the disk space to `bytes` more bytes. An Append that does not fit fails with ResourceExhausted and writes
  // nothing.
  void FillDiskAfter(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops all failures.
  void Heal() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Match {
    Operation operation;
    std::string part;
    absl::Status error;
  };

  // Counts one operation and returns its error, if any.
  absl::Status Before(Operation operation, const std::string& path) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Append(const std::string& path, absl::string_view data, WritableFile* file) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes `bytes` of disk space, or none if they do not fit.
  absl::Status TakeRoom(const std::string& path, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // True only for the operation at which the process dies.
  bool DiesNow() const ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  int64_t operations_ ABSL_GUARDED_BY(mutex_) = 0;
  // Operation numbers, from 1.
  int64_t first_failing_ ABSL_GUARDED_BY(mutex_) = kNever;
  int64_t last_failing_ ABSL_GUARDED_BY(mutex_) = kNever;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::vector<Match> matches_ ABSL_GUARDED_BY(mutex_);
  bool killing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t room_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<uint64_t>::max();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_TESTING_FAULTY_FILE_SYSTEM_H_
