#include "lockstep/train/session/end/pause.h"

#include "lockstep/common/base/mutex.h"

namespace lockstep::train {

absl::Status Pause(absl::Duration duration, Clock* clock, StopSignal* stop) {
  Mutex mutex;
  CondVar stopped;
  bool is_stopped = false;
  int64_t listener = 0;
  if (stop != nullptr) {
    listener = stop->Add([&] {
      MutexLock lock(&mutex);
      is_stopped = true;
      stopped.SignalAll();
    });
  }
  {
    MutexLock lock(&mutex);
    const absl::Time deadline = clock->Now() + duration;
    while (!is_stopped && !clock->WaitUntil(&stopped, &mutex, deadline)) {
    }
  }
  // After Remove, the listener is no longer called.
  if (stop != nullptr) stop->Remove(listener);
  return is_stopped ? absl::CancelledError("the process was told to stop") : absl::OkStatus();
}

}  // namespace lockstep::train
