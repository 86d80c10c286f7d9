#include "lockstep/common/base/process/trace_recorder.h"

#include <utility>

#include "absl/time/clock.h"

namespace lockstep {
namespace {

int ThisThread() {
  static std::atomic<int> last{0};
  thread_local const int number = ++last;
  return number;
}

}  // namespace

TraceRecorder* TraceRecorder::Process() {
  static TraceRecorder* const recorder = new TraceRecorder;  // Threads may end spans after main has returned.
  return recorder;
}

void TraceRecorder::Start() {
  MutexLock lock(&mutex_);
  events_.clear();
  open_.clear();
  recording_ = true;
}

std::vector<TraceEvent> TraceRecorder::Stop() {
  MutexLock lock(&mutex_);
  recording_ = false;
  const absl::Time now = absl::Now();
  for (const auto& [key, event] : open_) events_.push_back({event.name, event.begin, now, event.thread});
  open_.clear();
  return std::exchange(events_, {});
}

void TraceRecorder::Add(absl::string_view name, absl::Time begin, absl::Time end) {
  const int thread = ThisThread();
  MutexLock lock(&mutex_);
  if (recording() && events_.size() < kMaxEvents) events_.push_back({std::string(name), begin, end, thread});
}

void TraceRecorder::Open(const void* key, std::string name) {
  const int thread = ThisThread();
  MutexLock lock(&mutex_);
  if (!recording() || open_.size() >= kMaxEvents) return;
  open_[key] = {std::move(name), absl::Now(), absl::InfiniteFuture(), thread};
}

void TraceRecorder::Close(const void* key) {
  MutexLock lock(&mutex_);
  const auto it = open_.find(key);
  if (it == open_.end()) return;
  TraceEvent event = std::move(it->second);
  open_.erase(it);
  event.end = absl::Now();
  if (events_.size() < kMaxEvents) events_.push_back(std::move(event));
}

}  // namespace lockstep
