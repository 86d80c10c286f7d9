#include "lockstep/common/base/process/stop_requests.h"

#include <csignal>

namespace lockstep {

StopRequests::Meaning StopRequests::On(int signal, absl::Time now) {
  if (signal == SIGUSR1 || signal == SIGUSR2) return first_.has_value() ? Meaning::kSame : Meaning::kSave;
  if (!first_.has_value()) {
    first_ = now;
    return Meaning::kStop;
  }
  return signal == SIGINT && now - *first_ >= kApart ? Meaning::kAtOnce : Meaning::kSame;
}

}  // namespace lockstep
