#ifndef LOCKSTEP_TRAIN_HOOKS_BASE_SECOND_OR_STEP_TIMER_H_
#define LOCKSTEP_TRAIN_HOOKS_BASE_SECOND_OR_STEP_TIMER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"

namespace lockstep::train {

// The period of a repeated action. Exactly one of `steps` and `time` must be set.
struct Period {
  // The number of steps; at least 1.
  absl::optional<int64_t> steps;
  // The time that must pass; more than 0.
  absl::optional<absl::Duration> time;

  static Period Steps(int64_t steps) { return {steps, absl::nullopt}; }
  static Period Time(absl::Duration time) { return {absl::nullopt, time}; }
};

// A timer that decides at which steps a periodic action is due: at the first step that it is asked about, and then
// whenever the period has passed since the last action, but never twice at the same step. Not thread-safe.
class SecondOrStepTimer {
 public:
  // Returns InvalidArgument, with a message that begins with `prefix`, unless exactly one of steps and time is set and
  // in range. `clock` must outlive the timer.
  static absl::StatusOr<SecondOrStepTimer> Create(const Period& period, Clock* clock, absl::string_view prefix = "");

  bool ShouldTrigger(int64_t step) const;

  // The time and steps since the previous update.
  struct Elapsed {
    absl::Duration time;
    int64_t steps = 0;
  };
  // Records that the action happens now, at `step`. Returns the time and steps since the previous update, or nullopt
  // the first time.
  absl::optional<Elapsed> Update(int64_t step);
  // Forgets all updates.
  void Reset() { last_step_.reset(); }

  absl::optional<int64_t> last_triggered_step() const { return last_step_; }

  // Returns true if ShouldTrigger(step) may be true, given that steps are seen one by one. Intended for Hook::GatesAt.
  // Exact for a period in steps. For a period in time, returns true for every step except that of the last update.
  bool MayTriggerAt(int64_t step) const;

 private:
  SecondOrStepTimer(const Period& period, Clock* clock) : period_(period), clock_(clock) {}

  Period period_;
  Clock* clock_;
  absl::optional<int64_t> last_step_;
  absl::Time last_time_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_SECOND_OR_STEP_TIMER_H_
