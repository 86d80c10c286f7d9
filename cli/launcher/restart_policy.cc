#include "lockstep/cli/launcher/restart_policy.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr absl::Duration kLongLife = absl::Seconds(30);

Backoff::Options Delays() {
  Backoff::Options options;
  options.initial = absl::Milliseconds(100);
  options.max = absl::Seconds(10);
  return options;
}

}  // namespace

RestartPolicy::RestartPolicy(int64_t max_restarts, uint64_t seed)
    : max_restarts_(max_restarts), backoff_(Delays(), seed) {}

void RestartPolicy::Forgive(absl::Duration lived) {
  const int64_t forgiven = absl::IDivDuration(unforgiven_life_ + lived, kForgiveAfter, &unforgiven_life_);
  restarts_ = std::max<int64_t>(0, restarts_ - forgiven);
  if (restarts_ == 0) unforgiven_life_ = absl::ZeroDuration();
}

RestartPolicy::Decision RestartPolicy::OnExit(const ProcessExit& exit, absl::Duration lived) {
  Forgive(lived);
  Decision decision;
  decision.text = ExitText(exit);
  const bool killed = exit.signal != 0;
  if (!killed && exit.exit_code == kExitDone) {
    decision.action = Decision::kFinished;
    decision.exit_code = kExitDone;
  } else if (exit.signal == SIGTERM || exit.signal == SIGINT || exit.exit_code == kExitTerminated) {
    decision.action = Decision::kStopped;
    decision.exit_code = kExitTerminated;
    decision.text = "was asked to stop";
  } else if (!killed && exit.exit_code != kExitRetryable) {
    decision.exit_code = exit.exit_code == kExitBadConfiguration ? kExitBadConfiguration : kExitFailed;
  } else if (restarts_ >= max_restarts_) {
    decision.exit_code = killed ? kExitFailed : kExitRetryable;
    if (max_restarts_ > 0) absl::StrAppend(&decision.text, " after ", restarts_, " restarts");
  } else {
    if (lived >= kLongLife) backoff_.Reset();
    decision.action = Decision::kStartAgain;
    decision.delay = backoff_.Next();
    absl::StrAppend(&decision.text, "; starting it again (", ++restarts_, " of ", max_restarts_, ")");
  }
  return decision;
}

}  // namespace lockstep
