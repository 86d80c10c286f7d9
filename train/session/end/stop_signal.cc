#include "lockstep/train/session/end/stop_signal.h"

#include <algorithm>
#include <utility>

namespace lockstep::train {

void StopSignal::Request() {
  {
    MutexLock lock(&mutex_);
    if (requested_) return;
    requested_ = true;
  }
  CallAll(&Listener::stop);
}

bool StopSignal::RequestSave() {
  {
    // Set before the calls, because a listener that is added meanwhile would otherwise miss the request.
    MutexLock lock(&mutex_);
    save_pending_ = true;
  }
  if (CallAll(&Listener::save) == 0) return false;
  MutexLock lock(&mutex_);
  save_pending_ = false;
  return true;
}

int StopSignal::CallAll(std::function<void()> Listener::*call) {
  int called = 0;
  int64_t id = kNone;
  while (Listener* const listener = BeginNext(&id)) {
    // The listener cannot be removed until the call has returned.
    if (listener->*call) {
      (listener->*call)();
      ++called;
    }
    MutexLock lock(&mutex_);
    --listener->calls;
    called_.SignalAll();
  }
  return called;
}

StopSignal::Listener* StopSignal::BeginNext(int64_t* id) {
  MutexLock lock(&mutex_);
  const auto it = listeners_.upper_bound(*id);
  if (it == listeners_.end()) return nullptr;
  *id = it->first;
  ++it->second.calls;
  return &it->second;
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

int64_t StopSignal::Add(std::function<void()> stop, std::function<void()> save) {
  int64_t id = 0;
  bool stops = false, saves = false;
  {
    MutexLock lock(&mutex_);
    id = ++last_id_;
    stops = requested_;
    saves = save != nullptr && std::exchange(save_pending_, false);
    // If a stop was already requested, `stop` is called below, and CallAll must not call it again.
    listeners_[id] = {stops ? nullptr : stop, save};
  }
  if (saves) save();
  if (stops) stop();
  return id;
}

void StopSignal::Remove(int64_t id) {
  if (id == kNone) return;
  MutexLock lock(&mutex_);
  const auto it = listeners_.find(id);
  if (it == listeners_.end()) return;
  while (it->second.calls > 0) called_.Wait(&mutex_);
  listeners_.erase(it);
}

}  // namespace lockstep::train
