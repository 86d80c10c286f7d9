#ifndef LOCKSTEP_SERVER_CHIEF_JOURNAL_IDLE_LOG_H_
#define LOCKSTEP_SERVER_CHIEF_JOURNAL_IDLE_LOG_H_

#include "absl/time/time.h"

namespace lockstep {

// Decides when a chief logs that it waits for workers: after a short while, and then less and less often. Pure; not
// thread-safe.
class IdleLog {
 public:
  static constexpr absl::Duration kShortest = absl::Seconds(5), kLongest = absl::Minutes(10);

  // Called regularly; `waiting` is true if the chief is waiting for workers right now. Returns true if the wait must be
  // logged now. The wait of a chief that has waited from the start is logged immediately.
  bool Take(absl::Time now, bool waiting);

 private:
  absl::Time next_ = absl::InfinitePast();
  absl::Duration period_ = kFirstPeriod;

  // Time from the first line to the second. Each later interval is four times as long as the previous one, up to
  // kLongest.
  static constexpr absl::Duration kFirstPeriod = absl::Seconds(30);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_JOURNAL_IDLE_LOG_H_
