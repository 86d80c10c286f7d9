#ifndef LOCKSTEP_CLI_LAUNCHER_SIGNAL_WAIT_H_
#define LOCKSTEP_CLI_LAUNCHER_SIGNAL_WAIT_H_

#include <signal.h>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// While it lives, WatchedSignals() (process.h) and SIGCHLD wait until they are asked for, in this thread and those that
// it makes from then on. Make it before any other thread, and use it in the thread that made it.
class SignalWait {
 public:
  SignalWait();
  // Signals that were not waited for take effect now.
  ~SignalWait();
  SignalWait(const SignalWait&) = delete;
  SignalWait& operator=(const SignalWait&) = delete;

  // Blocks until one of the signals comes; nullopt after `limit`.
  absl::optional<int> Wait(absl::Duration limit);
  // The process is stopping and about to exit: stop signals that arrived meanwhile or arrive from now on repeat the
  // same request, and do not change how it ends.
  void IgnoreStops();

 private:
  sigset_t signals_;
  sigset_t before_;
};

// One of StopSignals().
inline bool IsStop(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGXCPU;
}

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_SIGNAL_WAIT_H_
