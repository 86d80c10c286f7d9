#ifndef LOCKSTEP_CLI_REPORT_STATUS_POLLER_H_
#define LOCKSTEP_CLI_REPORT_STATUS_POLLER_H_

#include <memory>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Polls a chief for its status in its own thread, so that an unresponsive chief blocks no caller. Thread-safe.
class StatusPoller {
 public:
  // `clock` must outlive the poller. If the period is zero or less, the owner calls RunOnce.
  StatusPoller(std::unique_ptr<ChiefClient> client, Clock* clock, absl::Duration period);

  // Returns the newest answer that has not been taken yet, or nullopt.
  absl::optional<v1::RunStatus> Take() ABSL_LOCKS_EXCLUDED(mutex_);

  void RunOnce() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::unique_ptr<ChiefClient> client_;
  Mutex mutex_;
  absl::optional<v1::RunStatus> status_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PeriodicTask> task_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_STATUS_POLLER_H_
