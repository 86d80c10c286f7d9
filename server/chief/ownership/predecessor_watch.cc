#include "lockstep/server/chief/ownership/predecessor_watch.h"

#include "absl/status/statusor.h"

namespace lockstep {

PredecessorWatch::State PredecessorWatch::Look(bool held, absl::Time now) {
  if (!held) {
    last_.reset();
    return State::kGone;
  }
  const absl::StatusOr<absl::optional<FencedFiles::LastBeat>> beat = FencedFiles::ReadLastBeat(fs_, logdir_);
  // A disk that cannot be read says nothing about the chief.
  if (!beat.ok() || !*beat || !(*beat == last_)) {
    last_ = beat.ok() ? *beat : absl::nullopt;
    since_ = now;
    return State::kRuns;
  }
  return now - since_ >= limit_ ? State::kSilent : State::kRuns;
}

}  // namespace lockstep
