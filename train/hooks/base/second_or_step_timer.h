#ifndef LOCKSTEP_TRAIN_HOOKS_BASE_SECOND_OR_STEP_TIMER_H_
#define LOCKSTEP_TRAIN_HOOKS_BASE_SECOND_OR_STEP_TIMER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"

namespace lockstep::train {

// How often something is to happen: exactly one of the two.
struct Period {
  // Every so many steps, at least 1.
  absl::optional<int64_t> steps;
  // Whenever this has passed, more than 0.
  absl::optional<absl::Duration> time;

  static Period Steps(int64_t steps) { return {steps, absl::nullopt}; }
  static Period Time(absl::Duration time) { return {absl::nullopt, time}; }
};

// Says at which steps something is due that happens with a period: at the first that it is asked for, and then when the
// period has passed since the last one, never twice at a step. Not thread-safe.
class SecondOrStepTimer {
 public:
  // `clock` outlives the timer. InvalidArgument, with a message that begins with `prefix`, when both or neither is set,
  // and for a value out of range.
  static absl::StatusOr<SecondOrStepTimer> Create(const Period& period, Clock* clock, absl::string_view prefix = "");

  bool ShouldTrigger(int64_t step) const;

  // What has passed since the update before.
  struct Elapsed {
    absl::Duration time;
    int64_t steps = 0;
  };
  // It has happened at `step`, now. nullopt the first time.
  absl::optional<Elapsed> Update(int64_t step);
  // As if nothing had happened.
  void Reset() { last_step_.reset(); }

  absl::optional<int64_t> last_triggered_step() const { return last_step_; }

  // Whether ShouldTrigger(step) may be true if steps are seen one by one: for Hook::GatesAt. Exact with a period of
  // steps; with one of time true for every step that is not the last.
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
