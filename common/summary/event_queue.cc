#include "lockstep/common/summary/event_queue.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

struct EventQueue::State {
  State(Clock* clock, std::unique_ptr<EventSink> sink) : clock(clock), sink(std::move(sink)) {}

  // Blocks until `done`, which is called with the mutex held, returns true. Returns false if `deadline` passes first.
  template <typename Done>
  bool Await(absl::Time deadline, Done done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    while (!done()) {
      if (clock->WaitUntil(&changed, &mutex, deadline)) return done();
    }
    return true;
  }

  Clock* const clock;
  const std::unique_ptr<EventSink> sink;

  Mutex mutex;
  CondVar changed;
  struct Waiting {
    v1::Event event;
    size_t bytes = 0;  // of the event's memory
  };
  std::deque<Waiting> waiting ABSL_GUARDED_BY(mutex);
  size_t waiting_bytes ABSL_GUARDED_BY(mutex) = 0;
  int64_t dropped ABSL_GUARDED_BY(mutex) = 0;
  // True if no event has been taken from the queue since one was last dropped.
  bool dropping ABSL_GUARDED_BY(mutex) = false;
  // Number of Flush calls made, number of those completed, and the result of the last one completed.
  int64_t flushes_wanted ABSL_GUARDED_BY(mutex) = 0;
  int64_t flushes_done ABSL_GUARDED_BY(mutex) = 0;
  absl::Status flush_status ABSL_GUARDED_BY(mutex);
  bool closing ABSL_GUARDED_BY(mutex) = false;
  bool closed ABSL_GUARDED_BY(mutex) = false;
};

EventQueue::EventQueue(const Options& options, std::unique_ptr<EventSink> sink)
    : options_(options),
      state_(std::make_shared<State>(options.clock, std::move(sink))),
      thread_(options.executor->Start("events", [state = state_] { Loop(state.get()); })) {}

EventQueue::~EventQueue() {
  bool closed = false;
  size_t lost = 0;
  {
    MutexLock lock(&state_->mutex);
    state_->closing = true;
    state_->changed.SignalAll();
    closed = state_->Await(options_.clock->Now() + options_.close_limit, [this] {
      state_->mutex.AssertHeld();
      return state_->closed;
    });
    lost = state_->waiting.size();
  }
  if (closed) return;
  LOG(ERROR) << path() << " could not be closed within " << absl::FormatDuration(options_.close_limit) << "; " << lost
             << " events are lost";
  thread_->Detach();
}

void EventQueue::Loop(State* state) {
  while (true) {
    v1::Event event;
    bool any = false;
    int64_t flush = 0;
    bool closing = false;
    absl::optional<int64_t> dropped;
    {
      MutexLock lock(&state->mutex);
      while (state->waiting.empty() && state->flushes_wanted == state->flushes_done && !state->closing) {
        state->changed.Wait(&state->mutex);
      }
      any = !state->waiting.empty();
      if (any) {
        event = std::move(state->waiting.front().event);
        state->waiting_bytes -= state->waiting.front().bytes;
        state->waiting.pop_front();
        if (std::exchange(state->dropping, false)) dropped = state->dropped;
      }
      flush = state->flushes_wanted;
      closing = state->closing;
    }
    LOG_IF(INFO, dropped.has_value()) << state->sink->path() << " takes events again; " << dropped.value_or(0)
                                      << " were dropped so far";
    if (any) {
      state->sink->Write(std::move(event));
      continue;
    }
    const absl::Status status = closing ? state->sink->Close() : state->sink->Flush();
    MutexLock lock(&state->mutex);
    state->flushes_done = flush;
    state->flush_status = status;
    state->closed = closing;
    state->changed.SignalAll();
    if (closing) return;
  }
}

bool EventQueue::Write(v1::Event event) {
  if (event.wall_time() == 0) event.set_wall_time(EventWriter::StampOf(options_.clock->WallTime()));
  const size_t bytes = event.SpaceUsedLong();
  size_t waiting = 0, waiting_bytes = 0;
  {
    MutexLock lock(&state_->mutex);
    waiting = state_->waiting.size();
    waiting_bytes = state_->waiting_bytes;
    if (waiting == 0 || (waiting < options_.capacity && waiting_bytes + bytes <= options_.capacity_bytes)) {
      state_->waiting.push_back({std::move(event), bytes});
      state_->waiting_bytes += bytes;
      state_->changed.SignalAll();
      return true;
    }
    ++state_->dropped;
    if (std::exchange(state_->dropping, true)) return false;
  }
  LOG(WARNING) << path() << " takes no events: " << waiting << " wait, with " << waiting_bytes
               << " bytes, and those that come now are dropped";
  return false;
}

void EventQueue::WriteScalar(absl::string_view tag, float value, int64_t step) { Write(ScalarEvent(tag, value, step)); }

void EventQueue::WriteSessionLog(v1::SessionLog::SessionStatus status, int64_t step,
                                 absl::string_view checkpoint_path) {
  Write(SessionLogEvent(status, step, checkpoint_path));
}

absl::Status EventQueue::Flush(absl::Duration limit) {
  size_t waiting = 0;
  {
    MutexLock lock(&state_->mutex);
    const int64_t flush = ++state_->flushes_wanted;
    state_->changed.SignalAll();
    const bool done = state_->Await(options_.clock->Now() + limit, [this, flush] {
      state_->mutex.AssertHeld();
      return state_->flushes_done >= flush;
    });
    if (done) return state_->flush_status;
    waiting = state_->waiting.size();
  }
  const absl::Status late = absl::DeadlineExceededError(
      absl::StrCat(path(), " takes no events for ", absl::FormatDuration(limit), "; ", waiting, " wait to be written"));
  LOG(WARNING) << late.message();
  return late;
}

int64_t EventQueue::dropped() const {
  MutexLock lock(&state_->mutex);
  return state_->dropped;
}

const std::string& EventQueue::path() const { return state_->sink->path(); }

}  // namespace lockstep
