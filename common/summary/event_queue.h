#ifndef LOCKSTEP_COMMON_SUMMARY_EVENT_QUEUE_H_
#define LOCKSTEP_COMMON_SUMMARY_EVENT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {

// A queue that passes events to an EventSink in a separate thread, so that a hanging disk does not block the callers.
// Holds up to `capacity` events that take up to `capacity_bytes` of memory; further ones are dropped and counted. Each
// hang is logged once. The constructor starts the thread. The destructor writes waiting events and closes the file, but
// abandons the thread if that takes longer than `close_limit`, so the clock and the sink's file system must outlive the
// thread. Thread-safe.
class EventQueue {
 public:
  struct Options {
    Clock* clock = nullptr;
    Executor* executor = Executor::Threads();
    size_t capacity = 4096;  // events
    // If the queue is empty, an event is queued even if it is larger than this.
    size_t capacity_bytes = 64 << 20;
    absl::Duration close_limit = absl::Seconds(5);
  };

  EventQueue(const Options& options, std::unique_ptr<EventSink> sink);
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // These functions are like EventWriter's, but never block on files. Events are timestamped on arrival. Write returns
  // false if the event is dropped.
  bool Write(v1::Event event);
  void WriteScalar(absl::string_view tag, float value, int64_t step);
  void WriteSessionLog(v1::SessionLog::SessionStatus status, int64_t step, absl::string_view checkpoint_path = "");

  // Blocks until all earlier events are flushed. Errors: DeadlineExceeded, which is also logged, if that takes longer
  // than `limit`; errors of EventSink::Flush.
  absl::Status Flush(absl::Duration limit);

  // Number of events dropped so far.
  int64_t dropped() const;
  const std::string& path() const;

 private:
  struct State;
  static void Loop(State* state);

  const Options options_;
  // Shared with the thread, which may outlive this object.
  const std::shared_ptr<State> state_;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SUMMARY_EVENT_QUEUE_H_
