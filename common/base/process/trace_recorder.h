#ifndef LOCKSTEP_COMMON_BASE_PROCESS_TRACE_RECORDER_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_TRACE_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// An activity of one thread of this process, which becomes a line of a timeline.
struct TraceEvent {
  std::string name;
  absl::Time begin, end;
  // The thread's number in this process. Threads are numbered from 1 in the order of their first events.
  int thread = 0;
};

// Collects events while recording. Otherwise each event costs only one relaxed load. Times come from the machine's own
// clock, because they are only shown to people. Thread-safe.
class TraceRecorder {
 public:
  // Maximum number of events; later events are dropped.
  static constexpr size_t kMaxEvents = 100000;

  // Returns the process's recorder, which TraceSpan uses. There is one per process, like the log: a trace shows all
  // threads, and no layer between a session and a kernel has to pass a recorder on. Only one step can be traced at a
  // time.
  static TraceRecorder* Process();

  // Discards the collected events and starts recording.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops recording. Returns the events in the order of their ends, followed by the events that have not ended, which
  // get the current time as their end.
  std::vector<TraceEvent> Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool recording() const { return recording_.load(std::memory_order_relaxed); }

  // Adds an event of the calling thread.
  void Add(absl::string_view name, absl::Time begin, absl::Time end) ABSL_LOCKS_EXCLUDED(mutex_);
  // Together, these two calls do the same as Add. `key` identifies the open event.
  void Open(const void* key, std::string name) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(const void* key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::atomic<bool> recording_{false};
  Mutex mutex_;
  std::vector<TraceEvent> events_ ABSL_GUARDED_BY(mutex_);
  // Events that began while recording and have not ended.
  std::map<const void*, TraceEvent> open_ ABSL_GUARDED_BY(mutex_);
};

// An event that lasts for the lifetime of the object, if the process is recording when it begins.
class TraceSpan {
 public:
  // The event's name is `name` followed by `suffix`.
  explicit TraceSpan(absl::string_view name, absl::string_view suffix = "")
      : open_(TraceRecorder::Process()->recording()) {
    if (open_) TraceRecorder::Process()->Open(this, absl::StrCat(name, suffix));
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

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_TRACE_RECORDER_H_
