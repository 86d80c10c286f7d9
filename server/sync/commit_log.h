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

// Who sets variables or changes settings between two steps. What hooks do they do again after a restart.
enum class ChangedBy { kProgram, kHook };

// The updates of a run in order, for one who follows it (a program's session), and the state that the follower has come
// to, which every checkpoint holds. Between the two, a checkpoint holds what the follower has not seen, so that after a
// restart it sees every update once. Thread-safe; its lock is a leaf.
class CommitLog {
 public:
  // Of updates that the follower's state does not need, only so many are kept.
  static constexpr size_t kCapacity = 64;

  explicit CommitLog(Clock* clock) : clock_(clock) {}

  // The run continues at `step`, from a checkpoint with `state` (empty: it had none), with these `settings`, to which
  // they came by `changes` changes.
  void Start(int64_t step, const v1::SessionState& state, int64_t changes = 0, v1::SessionState::Settings settings = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Append(v1::StepCommit commit) ABSL_LOCKS_EXCLUDED(mutex_);
  // No update follows; `why` is OK when the run is over.
  void End(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);

  // The oldest update after global step `step`, which it waits for. Errors: OutOfRange when the run is over and there
  // is none; else what End was given; DeadlineExceeded at `deadline`.
  absl::StatusOr<v1::StepCommit> Await(int64_t step, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // The follower has seen all up to `step`, and its state is this. A state that is more than twice kCapacity updates
  // behind is dropped.
  void SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) ABSL_LOCKS_EXCLUDED(mutex_);
  // Variables were set once more. What hooks set counts as made since the newest SetState.
  void CountAssignment(ChangedBy by) ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of assignments that the values have.
  int64_t assignments() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Settings were changed to these. nullopt if they were these already, so that nothing is on record.
  void CountChange(ChangedBy by, absl::optional<v1::SessionState::Settings> settings) ABSL_LOCKS_EXCLUDED(mutex_);
  // The state that the run started with.
  v1::SessionState restored() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns what a checkpoint of the newest step holds; empty if there are no state, assignments and changes.
  std::string Serialize() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Drops what neither the state nor a slow follower needs.
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The hooks' state is another one.
  void ForgetHooksCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<v1::StepCommit> commits_ ABSL_GUARDED_BY(mutex_);
  // Without `unseen`.
  v1::SessionState state_ ABSL_GUARDED_BY(mutex_);
  v1::SessionState restored_ ABSL_GUARDED_BY(mutex_);
  bool has_state_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_COMMIT_LOG_H_
