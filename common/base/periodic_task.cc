#include "common/base/periodic_task.h"

#include <utility>

namespace lockstep {

PeriodicTask::PeriodicTask(const Options& options, std::function<void()> function)
    : options_(options), function_(std::move(function)) {
  if (options_.period > absl::ZeroDuration()) thread_ = std::thread([this] { Loop(); });
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
  if (thread_.joinable()) thread_.join();
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
    next += options_.period;
    const absl::Duration late = options_.clock->Now() - next;
    if (late > absl::ZeroDuration()) next += absl::Ceil(late, options_.period);
  }
}

}  // namespace lockstep
