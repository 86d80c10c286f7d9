#include "lockstep/server/chief/journal/idle_log.h"

#include <algorithm>

namespace lockstep {

bool IdleLog::Take(absl::Time now, bool waiting) {
  if (!waiting) {
    next_ = now + kShortest;
    period_ = kFirstPeriod;
    return false;
  }
  if (now < next_) return false;
  next_ = now + period_;
  period_ = std::min(4 * period_, kLongest);
  return true;
}

}  // namespace lockstep
