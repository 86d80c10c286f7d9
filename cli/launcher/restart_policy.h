#ifndef LOCKSTEP_CLI_LAUNCHER_RESTART_POLICY_H_
#define LOCKSTEP_CLI_LAUNCHER_RESTART_POLICY_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "lockstep/cli/launcher/process_table.h"
#include "lockstep/common/base/backoff.h"
#include "lockstep/common/base/process/process.h"

namespace lockstep {

// Decides whether to restart a run's process when it exits. For every ten minutes (kForgiveAfter) of running time,
// summed over restarts, one restart is forgiven and no longer counts. Reads no clock and starts nothing. Not
// thread-safe.
class RestartPolicy {
 public:
  static constexpr absl::Duration kForgiveAfter = absl::Minutes(10);

  // `seed` makes the delays of several processes differ.
  RestartPolicy(int64_t max_restarts, uint64_t seed);

  struct Decision {
    enum Action {
      kFinished,    // exit code 0
      kStopped,     // it was asked to stop (exit code 143, SIGTERM, SIGINT)
      kStartAgain,  // killed or retryable: restart it after `delay`
      kFailed,      // anything else, or restarted too often: the run ends with `exit_code`
    };
    Action action = kFailed;
    absl::Duration delay = absl::ZeroDuration();
    int exit_code = kExitFailed;
    // A message to put after the process's name, e.g. "was killed by SIGKILL; starting it again (1 of 10)".
    std::string text;
  };

  // `lived` is the time from the process's start to its exit. A process that ran for a long time is restarted with the
  // shortest delay.
  Decision OnExit(const ProcessExit& exit, absl::Duration lived);

 private:
  void Forgive(absl::Duration lived);

  const int64_t max_restarts_;
  // Number of restarts that have not been forgiven.
  int64_t restarts_ = 0;
  // Running time since a restart was last forgiven.
  absl::Duration unforgiven_life_;
  Backoff backoff_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_RESTART_POLICY_H_
