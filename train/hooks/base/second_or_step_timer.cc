#include "lockstep/train/hooks/base/second_or_step_timer.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::train {

absl::StatusOr<SecondOrStepTimer> SecondOrStepTimer::Create(const Period& period, Clock* clock,
                                                            absl::string_view prefix) {
  if (period.steps.has_value() == period.time.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(prefix, "a period has ", period.steps ? "both" : "neither",
                                                   " steps and time where exactly one of them is expected"));
  }
  if (period.steps && *period.steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, "a period has ", *period.steps, " steps where at least 1 is expected"));
  }
  if (period.time && *period.time <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(prefix, "a period is ", absl::FormatDuration(*period.time),
                                                   " long where more than 0 is expected"));
  }
  return SecondOrStepTimer(period, clock);
}

bool SecondOrStepTimer::ShouldTrigger(int64_t step) const {
  if (!last_step_) return true;
  if (*last_step_ == step) return false;
  if (period_.time) return clock_->Now() >= last_time_ + *period_.time;
  return step >= *last_step_ + *period_.steps;
}

absl::optional<SecondOrStepTimer::Elapsed> SecondOrStepTimer::Update(int64_t step) {
  const absl::Time now = clock_->Now();
  absl::optional<Elapsed> elapsed;
  if (last_step_) elapsed = Elapsed{now - last_time_, step - *last_step_};
  last_step_ = step;
  last_time_ = now;
  return elapsed;
}

bool SecondOrStepTimer::MayTriggerAt(int64_t step) const {
  if (!last_step_) return true;
  if (period_.time) return step != *last_step_;
  return step > *last_step_ && (step - *last_step_) % *period_.steps == 0;
}

}  // namespace lockstep::train
