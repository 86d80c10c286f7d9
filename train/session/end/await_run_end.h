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
  // The chief's logdir as seen from this machine. When the chief is gone, the record in it shows whether the run is
  // over. If empty, no record is read.
  std::string logdir;
  // Maximum time to wait.
  absl::Duration limit = absl::InfiniteDuration();
  // Maximum time to search for a missing chief. If nullopt, the same as for workers: the run's
  // cluster.chief_wait_seconds, or 10 minutes as long as no chief has answered.
  absl::optional<absl::Duration> max_silence;
  // Time between two requests. A cluster's chief keeps answering for two seconds after the run is over or has failed
  // (Program).
  absl::Duration poll_interval = absl::Milliseconds(250);
  // If null, nothing stops the wait from outside. `stop`, `clock` and `fs` must outlive the call.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
  // If not null, used instead of a connection to `master`. Must outlive the call.
  ChiefClient* client = nullptr;
};

// Waits for the end of a run without taking part in it: until its chief or the record in its logdir says that it is
// over. Reads the record once a chief has answered, or after RunEndClient::kGrace. Intended for processes that do not
// hold variables or compute yet, such as parameter servers. Returns OK if the run ended successfully. Errors:
// FailedPrecondition with the reason if it failed; DeadlineExceeded after `limit`; Unavailable, naming the master, if
// the chief did not answer for too long; Cancelled if the process was stopped; InvalidArgument for a wrong master.
absl::Status AwaitRunEnd(const AwaitRunEndOptions& options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_AWAIT_RUN_END_H_
