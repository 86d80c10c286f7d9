#ifndef LOCKSTEP_TRAIN_SESSION_END_RUN_RESULT_H_
#define LOCKSTEP_TRAIN_SESSION_END_RUN_RESULT_H_

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep::train {

// The result of a chief session's run, for callers that query it or wait for it. Thread-safe.
class RunResult {
 public:
  // Records that the session has asked the run to finish.
  void RequestFinish() ABSL_LOCKS_EXCLUDED(mutex_);
  bool finish_requested() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Records why the process stops the run. Only the first call counts.
  void Fail(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the error recorded by Fail; OK if there is none.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns `status` or, if that is Cancelled, the failure that stopped the run.
  absl::Status Explain(absl::Status status) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Called once, after the chief has ended the run.
  void Set(absl::Status result) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until Set is called, and returns its argument.
  absl::Status Await() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool finish_requested_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  absl::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_RUN_RESULT_H_
