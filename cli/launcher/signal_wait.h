#ifndef LOCKSTEP_CLI_LAUNCHER_SIGNAL_WAIT_H_
#define LOCKSTEP_CLI_LAUNCHER_SIGNAL_WAIT_H_

#include <signal.h>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// Blocks WatchedSignals() (process.h) and SIGCHLD during its lifetime, in this thread and in threads created later,
// until Wait takes them. Create it before any other thread, and use it only in the thread that created it.
class SignalWait {
 public:
  SignalWait();
  // Unblocks the signals. Pending signals take effect now.
  ~SignalWait();
  SignalWait(const SignalWait&) = delete;
  SignalWait& operator=(const SignalWait&) = delete;

  // Blocks until one of the signals arrives, or returns nullopt after `limit`.
  absl::optional<int> Wait(absl::Duration limit);
  // Returns true if the kernel sent the last signal, as it sends Ctrl-C to all processes of a terminal.
  bool from_kernel() const { return last_.si_code == SI_KERNEL; }
  // Ignores later and pending stop signals, which would only repeat the request. Call it when the process is stopping
  // and about to exit.
  void IgnoreStops();

 private:
  sigset_t signals_;
  sigset_t before_;
  siginfo_t last_ = {};
};

// Returns true if `signal` is one of StopSignals().
inline bool IsStop(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGXCPU;
}

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_SIGNAL_WAIT_H_
