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

// Whether an error of the disk may be gone a moment later, such as an I/O error or a full disk; Unknown is one after
// which nobody knows what the disk has (RunHistory).
bool MayPass(const absl::Status& status);
// Returns how long to wait before what such an error stopped is tried again.
Backoff::Options RetryDelays();

// When a run is to be saved, and what is saved. Pure: the time comes in, decisions go out.
//
//   state                 TakeDue before the date  TakeDue at the date                     OnSaved(s)
//   step s not saved      no                       yes, and the date moves by the period   s saved
//   step s saved          no                       no, and the date moves by the period    s saved
//
// A save that failed is due again at the next date, and for a stop when RetryAt says so.
class SaveSchedule {
 public:
  struct Options {
    // Between two saves; zero: the clock asks for none.
    absl::Duration period;
    uint64_t seed = 0;  // of the delays between attempts
  };

  // The run begins at `now`.
  SaveSchedule(const Options& options, absl::Time now);

  // Whether a run whose last step is `step` is to be saved now.
  bool TakeDue(absl::Time now, int64_t step);
  // A snapshot of `step` is on its way, with this fingerprint of what the run's followers have come to.
  void OnSnapshot(int64_t step, size_t followers) {
    several_ = newest_.first == step && (several_ || newest_.second != followers);
    newest_ = {step, followers};
  }
  // The newest snapshot is of `step`, but the followers have gone on since, or between two snapshots of it: the later
  // may have been dropped because the earlier was being written.
  bool FollowersWentOn(int64_t step, size_t followers) const {
    return newest_.first == step && (several_ || newest_.second != followers);
  }
  // `step`, the run's newest, is saved as `prefix`.
  void OnSaved(int64_t step, std::string prefix);
  bool HasSaved(int64_t step) const { return saved_step_ >= step; }
  // The prefix of the newest checkpoint; empty when there is none.
  const std::string& checkpoint() const { return checkpoint_; }

  // From now on attempts to save must be over by `deadline`.
  void LimitRetries(absl::Time deadline) { deadline_ = deadline; }
  // When a save that ended with `status` is to be tried again: after a growing delay, if the error may pass, such as an
  // I/O error or a full disk, and the deadline is later. nullopt: it is not.
  absl::optional<absl::Time> RetryAt(absl::Time now, const absl::Status& status);

 private:
  const absl::Duration period_;
  absl::Time due_;
  int64_t saved_step_ = -1;
  std::pair<int64_t, size_t> newest_{-1, 0};
  bool several_ = false;  // snapshots of that step differ
  std::string checkpoint_;
  absl::Time deadline_ = absl::InfiniteFuture();
  Backoff delays_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_SCHEDULE_H_
