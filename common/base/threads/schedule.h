#ifndef LOCKSTEP_COMMON_BASE_THREADS_SCHEDULE_H_
#define LOCKSTEP_COMMON_BASE_THREADS_SCHEDULE_H_

#include "absl/time/time.h"

namespace lockstep {

// Returns the next date after `date` on a schedule without drift, for a caller that is ready at `now`. Skips dates that
// have already passed at `now`. `period` must be positive.
inline absl::Time NextDate(absl::Time date, absl::Duration period, absl::Time now) {
  const absl::Time next = date + period;
  return now > next ? next + absl::Ceil(now - next, period) : next;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_THREADS_SCHEDULE_H_
