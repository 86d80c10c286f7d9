#include "lockstep/cli/launcher/signal_wait.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>

#include "lockstep/common/base/process/process.h"

namespace lockstep {

SignalWait::SignalWait() {
  signals_ = WatchedSignals();
  sigaddset(&signals_, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

SignalWait::~SignalWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

absl::optional<int> SignalWait::Wait(absl::Duration limit) {
  const timespec timeout = absl::ToTimespec(std::clamp(limit, absl::ZeroDuration(), absl::Hours(24)));
  const int taken = sigtimedwait(&signals_, &last_, &timeout);
  if (taken < 0) return absl::nullopt;
  return taken;
}

void SignalWait::IgnoreStops() {
  for (const int stop : {SIGTERM, SIGINT, SIGHUP, SIGXCPU}) signal(stop, SIG_IGN);
}

}  // namespace lockstep
