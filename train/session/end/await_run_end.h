#ifndef LOCKSTEP_TRAIN_SESSION_END_AWAIT_RUN_END_H_
#define LOCKSTEP_TRAIN_SESSION_END_AWAIT_RUN_END_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep::train {

struct AwaitRunEndOptions {
  // The chief's master string.
  std::string master;
  // SessionOptions::tls_dir.
  std::string tls_dir;
  // The chief's logdir as seen from this machine. When the chief is gone, its record shows whether the run is over. If
  // empty, it is not read.
  std::string logdir;
  // The maximum time to wait.
  absl::Duration limit = absl::InfiniteDuration();
  // The maximum time to search for an absent chief. If absent, the same as for workers: the run's
  // cluster.chief_wait_seconds, or 10 minutes before a chief has answered.
  absl::optional<absl::Duration> max_silence;
  // The time between two requests. A cluster's chief answers for two seconds after the run is over or has failed
  // (Program).
  absl::Duration poll_interval = absl::Milliseconds(250);
  // If null, nothing stops the wait from outside. `stop`, `clock` and `fs` must outlive the call.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
  // Replaces the connection with `master`. Must outlive the call.
  ChiefClient* client = nullptr;
};

// Waits for the end of a run without taking part in it: until its chief or the record in its logdir says that it is
// over. Reads the record once a chief has answered, or after RunEndClient::kGrace. Intended for processes that have
// nothing to hold or nothing to compute yet. Returns OK if the run ended successfully. Errors: FailedPrecondition with
// the reason if it failed; DeadlineExceeded after `limit`; Unavailable, naming the master, if the chief stayed away;
// Cancelled if the process was stopped; InvalidArgument for a wrong master.
absl::Status AwaitRunEnd(const AwaitRunEndOptions& options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_AWAIT_RUN_END_H_
