#ifndef LOCKSTEP_COMMON_BASE_TRACE_RECORDER_H_
#define LOCKSTEP_COMMON_BASE_TRACE_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// What this process was doing, and in which thread: one line of a timeline.
struct TraceEvent {
  // A literal.
  const char* name = "";
  absl::Time begin, end;
  // Numbers the process's threads, from 1, in the order of their first events.
  int thread = 0;
};

// Collects events while somebody wants a timeline, and costs one relaxed load for each otherwise. The times are the
// machine's: they are shown to people and decide nothing. Thread-safe.
class TraceRecorder {
 public:
  // Of those that come after, none is kept.
  static constexpr size_t kMaxEvents = 100000;

  // That of TraceSpan.
  static TraceRecorder* Process();

  // Forgets what was collected, and begins.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends. Events in the order of their ends, and then those that have not ended, with this instant as their end.
  std::vector<TraceEvent> Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool recording() const { return recording_.load(std::memory_order_relaxed); }

  // Of the calling thread.
  void Add(const char* name, absl::Time begin, absl::Time end) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same in two calls; `key` tells open ones apart.
  void Open(const void* key, const char* name) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const void* key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::atomic<bool> recording_{false};
  Mutex mutex_;
  std::vector<TraceEvent> events_ ABSL_GUARDED_BY(mutex_);
  // Those that began while recording; without their ends.
  std::map<const void*, TraceEvent> open_ ABSL_GUARDED_BY(mutex_);
};

// An event from its construction to its end, if the process is recording by then.
class TraceSpan {
 public:
  explicit TraceSpan(const char* name) : open_(TraceRecorder::Process()->recording()) {
    if (open_) TraceRecorder::Process()->Open(this, name);
  }
  ~TraceSpan() {
    if (open_) TraceRecorder::Process()->Close(this);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  const bool open_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_TRACE_RECORDER_H_
