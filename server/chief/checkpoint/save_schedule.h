#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_SCHEDULE_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/backoff.h"

namespace lockstep {

// Returns true if a disk error may be temporary, such as an I/O error or a full disk. The code Unknown, which means
// that the state of the disk is not known (RunHistory), also counts as temporary.
bool MayPass(const absl::Status& status);
// Returns the delays between retries after a temporary disk error.
Backoff::Options RetryDelays();

// Decides when a run is saved, and what is saved. Pure: the caller passes the time.
//
//   state                 TakeDue before the date  TakeDue at the date                     OnSaved(s)
//   step s not saved      no                       yes, and the date moves by the period   s saved
//   step s saved          no                       no, and the date moves by the period    s saved
//
// A failed save is due again at the next date or, during a stop, when RetryAt says so.
class SaveSchedule {
 public:
  struct Options {
    // The time between two saves. If zero, time does not trigger saves.
    absl::Duration period;
    uint64_t seed = 0;  // for the delays between attempts
  };

  // The run begins at `now`.
  SaveSchedule(const Options& options, absl::Time now);

  // Returns true if a run at global step `step` should be saved now.
  bool TakeDue(absl::Time now, int64_t step);
  // Records that a snapshot of `step` was taken, with `followers` as the hash of the followers' state.
  void OnSnapshot(int64_t step, size_t followers) {
    several_ = newest_.first == step && (several_ || newest_.second != followers);
    newest_ = {step, followers};
  }
  // Returns true if the newest snapshot is of `step`, but the followers' state has changed since then or between two
  // snapshots of that step. In the latter case, the later snapshot may have been dropped because the earlier one was
  // being written.
  bool FollowersWentOn(int64_t step, size_t followers) const {
    return newest_.first == step && (several_ || newest_.second != followers);
  }
  // Records that `step`, the run's newest, was saved as `prefix`.
  void OnSaved(int64_t step, std::string prefix);
  bool HasSaved(int64_t step) const { return saved_step_ >= step; }
  // Returns the prefix of the newest checkpoint, or an empty string if there is none.
  const std::string& checkpoint() const { return checkpoint_; }

  // Sets the deadline for further attempts to save.
  void LimitRetries(absl::Time deadline) { deadline_ = deadline; }
  // Returns the time at which to retry a save that ended with `status`, or nullopt if the error is permanent (MayPass)
  // or that time is not before the deadline. The delay grows with each retry.
  absl::optional<absl::Time> RetryAt(absl::Time now, const absl::Status& status);

 private:
  const absl::Duration period_;
  absl::Time due_;
  int64_t saved_step_ = -1;
  std::pair<int64_t, size_t> newest_{-1, 0};
  bool several_ = false;  // the snapshots of newest_ had different followers' states
  std::string checkpoint_;
  absl::Time deadline_ = absl::InfiniteFuture();
  Backoff delays_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_SCHEDULE_H_
