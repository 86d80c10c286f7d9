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
  // The chief's.
  std::string master;
  // SessionOptions::tls_dir.
  std::string tls_dir;
  // The chief's, as this machine sees it: its record says that the run is over when the chief has gone. Empty: not
  // looked at.
  std::string logdir;
  // How long to wait.
  absl::Duration limit = absl::InfiniteDuration();
  // Limits the search for an absent chief. Absent: as for workers, the run's cluster.chief_wait_seconds, or 10 minutes
  // before a chief was heard.
  absl::optional<absl::Duration> max_silence;
  // Between two questions. The chief of a cluster answers for two seconds when the run is over or has failed (Program).
  absl::Duration poll_interval = absl::Milliseconds(250);
  // null: nothing is stopped from outside. These three outlive the call.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
  // In place of a connection with `master`; outlives the call.
  ChiefClient* client = nullptr;
};

// Waits, without taking part in the run, until its chief says that it is over, or, once the chief was heard or after
// RunEndClient::kGrace, the record in its logdir: what a process does that has nothing to
// hold or not yet anything to compute. OK when the run has ended well. Errors: FailedPrecondition with the reason when
// it has failed; DeadlineExceeded after `limit`; Unavailable, naming the master, when the chief stayed away; Cancelled
// when the process was told to stop; InvalidArgument for a wrong master.
absl::Status AwaitRunEnd(const AwaitRunEndOptions& options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_AWAIT_RUN_END_H_
