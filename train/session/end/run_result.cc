#include "lockstep/train/session/end/run_result.h"

#include <utility>

namespace lockstep::train {

void RunResult::RequestFinish() {
  MutexLock lock(&mutex_);
  finish_requested_ = true;
}

bool RunResult::finish_requested() const {
  MutexLock lock(&mutex_);
  return finish_requested_;
}

void RunResult::Fail(absl::Status why) {
  MutexLock lock(&mutex_);
  if (failure_.ok()) failure_ = std::move(why);
}

absl::Status RunResult::failure() const {
  MutexLock lock(&mutex_);
  return failure_;
}

absl::Status RunResult::Explain(absl::Status status) const {
  MutexLock lock(&mutex_);
  return absl::IsCancelled(status) && !failure_.ok() ? failure_ : status;
}

void RunResult::Set(absl::Status result) {
  MutexLock lock(&mutex_);
  result_ = std::move(result);
  changed_.SignalAll();
}

absl::Status RunResult::Await() {
  MutexLock lock(&mutex_);
  while (!result_) changed_.Wait(&mutex_);
  return *result_;
}

}  // namespace lockstep::train
