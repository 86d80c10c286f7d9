#include "lockstep/cli/report/status_poller.h"

#include <utility>

namespace lockstep {

StatusPoller::StatusPoller(std::unique_ptr<ChiefClient> client, Clock* clock, absl::Duration period)
    : client_(std::move(client)) {
  PeriodicTask::Options options;
  options.clock = clock;
  options.period = period;
  task_ = std::make_unique<PeriodicTask>(options, [this] { RunOnce(); });
}

absl::optional<v1::RunStatus> StatusPoller::Take() {
  MutexLock lock(&mutex_);
  return std::exchange(status_, absl::nullopt);
}

void StatusPoller::RunOnce() {
  absl::StatusOr<v1::RunStatus> status = client_->GetStatus();
  if (!status.ok()) return;
  MutexLock lock(&mutex_);
  status_ = *std::move(status);
}

}  // namespace lockstep
