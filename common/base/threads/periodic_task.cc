#include "lockstep/common/base/threads/periodic_task.h"

#include <utility>

#include "lockstep/common/base/threads/schedule.h"

namespace lockstep {

PeriodicTask::PeriodicTask(const Options& options, std::function<void()> function)
    : options_(options), function_(std::move(function)) {
  if (options_.period > absl::ZeroDuration()) {
    thread_ = options_.executor->Start(options_.name, [this] { Loop(); });
  }
}

PeriodicTask::~PeriodicTask() { Stop(); }

void PeriodicTask::RunOnce() {
  MutexLock lock(&run_mutex_);
  function_();
}

void PeriodicTask::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_requested_.SignalAll();
  }
  if (thread_ != nullptr) thread_->Join();
}

void PeriodicTask::Loop() {
  absl::Time next = options_.clock->Now();
  if (!options_.first_at_once) next += options_.period;
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && !options_.clock->WaitUntil(&stop_requested_, &mutex_, next)) {
      }
      if (stopping_) return;
    }
    RunOnce();
    next = NextDate(next, options_.period, options_.clock->Now());
  }
}

}  // namespace lockstep
