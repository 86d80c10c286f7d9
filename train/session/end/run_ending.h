#ifndef LOCKSTEP_TRAIN_SESSION_END_RUN_ENDING_H_
#define LOCKSTEP_TRAIN_SESSION_END_RUN_ENDING_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep::train {

// How the run of a chief's session comes to its end, for those who ask or wait for it. Thread-safe.
class RunEnding {
 public:
  // The session has asked the run to end.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stop_requested() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A worker of this process cannot go on, and the run is stopped for that. The first one counts.
  void FailWorker(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);
  // `status`, or why the run was stopped when that is Cancelled.
  absl::Status Explain(absl::Status status) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The chief has done with the run. Once.
  void End(absl::Status how) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until End.
  absl::Status Await() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status worker_failure_ ABSL_GUARDED_BY(mutex_);
  absl::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_RUN_ENDING_H_
