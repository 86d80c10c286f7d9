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

// Writes events with an EventWriter in a thread of its own, so that a disk that hangs holds up nobody who has an event
// to write. Up to `capacity` events wait for it; what comes then is dropped and counted, which is logged once for each
// time that the disk hangs. Life: constructing starts the thread; destroying writes what waits, closes the file, and
// leaves the thread behind if that takes longer than `close_limit`: the clock, and the file system of the writer, must
// outlive the thread. Thread-safe.
class EventQueue {
 public:
  struct Options {
    Clock* clock = nullptr;
    Executor* executor = Executor::Threads();
    size_t capacity = 4096;  // events
    absl::Duration close_limit = absl::Seconds(5);
  };

  EventQueue(const Options& options, std::unique_ptr<EventWriter> writer);
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // As those of EventWriter, but never blocks on files. The event is stamped here.
  void Write(v1::Event event);
  void WriteScalar(absl::string_view tag, float value, int64_t step);
  void WriteSessionLog(v1::SessionLog::SessionStatus status, int64_t step, absl::string_view checkpoint_path = "");

  // Blocks until all that was written before is flushed. Errors: DeadlineExceeded, logged, when that takes longer than
  // `limit`; else EventWriter::Flush's.
  absl::Status Flush(absl::Duration limit);

  // Events that were dropped so far.
  int64_t dropped() const;
  const std::string& path() const;

 private:
  struct State;
  static void Loop(State* state);

  const Options options_;
  // The thread's, too: it may outlive this.
  const std::shared_ptr<State> state_;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SUMMARY_EVENT_QUEUE_H_
