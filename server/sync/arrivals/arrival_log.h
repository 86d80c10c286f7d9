#ifndef LOCKSTEP_SERVER_SYNC_ARRIVALS_ARRIVAL_LOG_H_
#define LOCKSTEP_SERVER_SYNC_ARRIVALS_ARRIVAL_LOG_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/arrival.pb.h"

namespace lockstep {

// The file "arrivals-<generation>" in the logdir (arrival.proto), which records the order in which one incarnation of
// the chief admits contributions. A chief never writes an earlier incarnation's file; a reader drops the records that a
// restart has invalidated (RecordedOrder). A dedicated thread writes the file once a second. Thread-safe; the mutex is
// a leaf lock.
class ArrivalLog {
 public:
  // Maximum size of the records that wait while the disk hangs. If it is exceeded, the waiting records are dropped, and
  // their steps are missing from the log.
  static constexpr size_t kMaxPendingBytes = 64 << 20;

  struct Options {
    FileSystem* fs = nullptr;  // must outlive the log, like all pointers
    Clock* clock = nullptr;
    Executor* executor = Executor::Threads();
    std::string logdir;
    // The file's header, without `format`.
    v1::ArrivalLogHeader header;
    // The period of writes. If zero (in tests), only Sync and the destructor write.
    absl::Duration period = absl::Seconds(1);
  };

  // Creates the file, which is durable on return. Errors: AlreadyExists if the logdir already has a file of this name;
  // errors of the file system, after which there is no file.
  static absl::StatusOr<std::unique_ptr<ArrivalLog>> Create(Options options);
  // Returns true if the logdir has files of incarnations that recorded the order. If so, an incarnation that does not
  // record it must create a file too, so that readers know the step from which the earlier files no longer apply.
  static absl::StatusOr<bool> HasFiles(FileSystem* fs, const std::string& logdir);
  // Writes the pending records.
  ~ArrivalLog();

  // Never blocks on files.
  void Append(const v1::Arrival& arrival) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until everything appended so far is on the device. After an error, the records remain pending.
  absl::Status Sync() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ArrivalLog(Options options, std::unique_ptr<WritableFile> file);
  // Called by the periodic task and the destructor, never concurrently.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<WritableFile> file_;  // used by Write only
  Mutex mutex_;
  std::string pending_ ABSL_GUARDED_BY(mutex_);
  bool overflowed_ ABSL_GUARDED_BY(mutex_) = false;
  // True from a call to Sync until the file has been synced.
  bool sync_requested_ ABSL_GUARDED_BY(mutex_) = false;
  // The result of the last Write.
  absl::Status written_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PeriodicTask> task_;  // the last member, because it uses the others
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_ARRIVALS_ARRIVAL_LOG_H_
