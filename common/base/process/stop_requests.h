#ifndef LOCKSTEP_COMMON_BASE_PROCESS_STOP_REQUESTS_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_STOP_REQUESTS_H_

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// Decides what each watched signal means. SIGUSR1 and SIGUSR2, which schedulers send before they take a machine away,
// ask for a save and nothing else; a stop saves anyway. Among stop signals, this class distinguishes repetitions of one
// request from a request to end immediately. One stop often arrives as several signals: from a service manager and from
// the supervisor, from a shell and from the kernel when a terminal closes, to a process and to its group, and one for
// each thread of a parent that dies. None of these may abort a save. Only SIGINT, a user's Ctrl-C, can mean an
// immediate end, and only if it arrives too late to have been sent with the first signal. Any other sender that wants
// an immediate end uses SIGKILL. Not thread-safe.
class StopRequests {
 public:
  enum class Meaning {
    kStop,    // the first stop signal
    kSame,    // a repetition
    kAtOnce,  // a user does not want to wait
    kSave,    // save now, then continue
  };

  // A SIGINT means kAtOnce if it arrives this long after the first stop signal, or later.
  static constexpr absl::Duration kApart = absl::Seconds(1);

  // `signal` is one of WatchedSignals() (process.h), received at `now`, a monotonic time.
  Meaning On(int signal, absl::Time now);

 private:
  absl::optional<absl::Time> first_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_STOP_REQUESTS_H_
