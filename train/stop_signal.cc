#include "lockstep/train/stop_signal.h"

#include <algorithm>
#include <utility>

namespace lockstep::train {

void StopSignal::Request() {
  {
    MutexLock lock(&mutex_);
    if (requested_) return;
    requested_ = true;
  }
  int64_t after = 0;
  while (true) {
    std::function<void()> listener;
    {
      MutexLock lock(&mutex_);
      calling_ = 0;
      called_.SignalAll();
      const auto it = listeners_.upper_bound(after);
      if (it == listeners_.end()) return;
      after = calling_ = it->first;
      listener = it->second;
    }
    listener();
  }
}

bool StopSignal::requested() const {
  MutexLock lock(&mutex_);
  return requested_;
}

void StopSignal::Allow(absl::Duration limit) {
  MutexLock lock(&mutex_);
  limit_ = std::max(limit_.value_or(limit), limit);
}

absl::Duration StopSignal::limit(absl::Duration otherwise) const {
  MutexLock lock(&mutex_);
  return limit_.value_or(otherwise);
}

int64_t StopSignal::Add(std::function<void()> listener) {
  int64_t id = 0;
  bool late = false;
  {
    MutexLock lock(&mutex_);
    id = ++last_id_;
    late = requested_;
    // One that comes while the others are being called is called here.
    if (!late) listeners_[id] = listener;
  }
  if (late) listener();
  return id;
}

void StopSignal::Remove(int64_t id) {
  if (id == kNone) return;
  MutexLock lock(&mutex_);
  listeners_.erase(id);
  while (calling_ == id) called_.Wait(&mutex_);
}

}  // namespace lockstep::train
