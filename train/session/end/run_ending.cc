#include "lockstep/train/session/end/run_ending.h"

#include <utility>

namespace lockstep::train {

void RunEnding::RequestStop() {
  MutexLock lock(&mutex_);
  stop_requested_ = true;
}

bool RunEnding::stop_requested() const {
  MutexLock lock(&mutex_);
  return stop_requested_;
}

void RunEnding::FailWorker(absl::Status why) {
  MutexLock lock(&mutex_);
  if (worker_failure_.ok()) worker_failure_ = std::move(why);
}

absl::Status RunEnding::Explain(absl::Status status) const {
  MutexLock lock(&mutex_);
  return absl::IsCancelled(status) && !worker_failure_.ok() ? worker_failure_ : status;
}

void RunEnding::End(absl::Status how) {
  MutexLock lock(&mutex_);
  ended_ = std::move(how);
  changed_.SignalAll();
}

absl::Status RunEnding::Await() {
  MutexLock lock(&mutex_);
  while (!ended_) changed_.Wait(&mutex_);
  return *ended_;
}

}  // namespace lockstep::train
