#include "lockstep/server/chief/ownership/predecessor_watch.h"

#include "absl/status/statusor.h"

namespace lockstep {

PredecessorWatch::State PredecessorWatch::Look(absl::FunctionRef<bool()> is_held) {
  const absl::Time before = clock_->Now();
  if (!is_held()) {
    last_.reset();
    return State::kGone;
  }
  const absl::StatusOr<absl::optional<FencedFiles::LastBeat>> beat = FencedFiles::ReadLastBeat(fs_, logdir_);
  const absl::Time after = clock_->Now();
  // If the disk cannot be read, the chief's state is unknown.
  if (!beat.ok() || !*beat || !(*beat == last_)) {
    last_ = beat.ok() ? *beat : absl::nullopt;
    since_ = after;
    return State::kRuns;
  }
  const bool silent = before - since_ >= limit_;
  since_ += after - before;
  return silent ? State::kSilent : State::kRuns;
}

}  // namespace lockstep
