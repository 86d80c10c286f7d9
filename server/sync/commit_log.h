#ifndef LOCKSTEP_SERVER_SYNC_COMMIT_LOG_H_
#define LOCKSTEP_SERVER_SYNC_COMMIT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// The party that sets variables or changes settings between two steps. Hooks repeat their changes after a restart.
enum class ChangedBy { kProgram, kHook };

// The updates of a run, in order, for the session of the program that follows them (the follower), together with the
// follower's state. Every checkpoint stores this state and the updates that the follower has not seen yet, so that it
// sees every update exactly once, even after a restart. Thread-safe; the mutex is a leaf lock.
class CommitLog {
 public:
  // Number of updates that are kept even if the follower's state no longer needs them.
  static constexpr size_t kCapacity = 64;

  explicit CommitLog(Clock* clock) : clock_(clock) {}

  // Continues the run at `step` from a checkpoint with `state` (empty if it had none). `settings` are those in effect
  // after `changes` changes.
  void Start(int64_t step, const v1::SessionState& state, int64_t changes = 0, v1::SessionState::Settings settings = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Append(v1::StepCommit commit) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the log: no more updates follow. `why` is OK if the run has ended.
  void End(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for the oldest update after global step `step` and returns it. If the log has ended without such an update,
  // returns the status passed to End or, if that was OK, OutOfRange. Returns DeadlineExceeded at `deadline`.
  absl::StatusOr<v1::StepCommit> Await(int64_t step, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the state of the follower, which has seen all updates up to `step`. A state that is more than twice kCapacity
  // updates behind is dropped.
  void SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts an assignment to variables. Assignments by hooks are also counted separately, from the latest SetState on.
  void CountAssignment(ChangedBy by) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of assignments that the values reflect.
  int64_t assignments() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a change to `settings`. nullopt means that the settings were already in effect; then only a hook's call is
  // counted.
  void CountChange(ChangedBy by, absl::optional<v1::SessionState::Settings> settings) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the state that the run started with.
  v1::SessionState restored() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the state that a checkpoint of the newest step stores, or an empty string if there is no state and there
  // were no assignments or changes.
  std::string Serialize() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Drops updates that neither the state nor a slow follower needs.
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Clears the counts of the hooks' calls, because the hooks' state changes.
  void ForgetHooksCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<v1::StepCommit> commits_ ABSL_GUARDED_BY(mutex_);
  // The follower's state, without `unseen`.
  v1::SessionState state_ ABSL_GUARDED_BY(mutex_);
  v1::SessionState restored_ ABSL_GUARDED_BY(mutex_);
  bool has_state_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_COMMIT_LOG_H_
