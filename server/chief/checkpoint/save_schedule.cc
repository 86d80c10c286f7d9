#include "lockstep/server/chief/checkpoint/save_schedule.h"

#include <utility>

namespace lockstep {

Backoff::Options RetryDelays() {
  Backoff::Options delays;
  delays.max = absl::Seconds(2);
  return delays;
}

bool MayPass(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsUnknown(status);
}

SaveSchedule::SaveSchedule(const Options& options, absl::Time now)
    : period_(options.period),
      due_(period_ > absl::ZeroDuration() ? now + period_ : absl::InfiniteFuture()),
      delays_(RetryDelays(), options.seed) {}

bool SaveSchedule::TakeDue(absl::Time now, int64_t step) {
  if (now < due_) return false;
  due_ = now + period_;
  return saved_step_ != step;
}

void SaveSchedule::OnSaved(int64_t step, std::string prefix) {
  saved_step_ = step;
  checkpoint_ = std::move(prefix);
}

absl::optional<absl::Time> SaveSchedule::RetryAt(absl::Time now, const absl::Status& status) {
  if (!MayPass(status)) return absl::nullopt;
  const absl::Time next = now + delays_.Next();
  if (next >= deadline_) return absl::nullopt;
  return next;
}

}  // namespace lockstep
