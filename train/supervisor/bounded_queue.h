#ifndef LOCKSTEP_TRAIN_SUPERVISOR_BOUNDED_QUEUE_H_
#define LOCKSTEP_TRAIN_SUPERVISOR_BOUNDED_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep::train {

// The part of a queue's interface that a QueueRunner uses.
class ClosableQueue {
 public:
  virtual ~ClosableQueue() = default;
  // Closes the queue permanently. No more elements can be added, but the remaining ones can still be taken. Callers
  // that are waiting to add an element still do so as room becomes free or, with `cancel_pending`, receive Cancelled. A
  // second call has an effect only with `cancel_pending`.
  virtual void Close(bool cancel_pending) = 0;
};

// A queue that passes elements between threads, in the order in which they were enqueued. Holds at most `capacity`
// elements; if that is 0, none can be enqueued. The counterpart of TensorFlow's FIFOQueue, for communication between a
// program's threads. Not a source of batches, which are a function of (step, slot). Thread-safe.
template <typename T>
class BoundedQueue : public ClosableQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Adds an element, waiting for room if necessary. Returns Cancelled if the queue is closed.
  absl::Status Enqueue(T element) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (closed_) return absl::CancelledError("the queue is closed");
    const int64_t ticket = next_ticket_++;
    while (!cancelled_ && (ticket != first_ticket_ || elements_.size() >= capacity_)) changed_.Wait(&mutex_);
    if (cancelled_) return absl::CancelledError("the queue was closed before there was room");
    ++first_ticket_;
    elements_.push_back(std::move(element));
    changed_.SignalAll();
    return absl::OkStatus();
  }

  // Removes and returns the oldest element, waiting for one if necessary. Returns OutOfRange if the queue is closed and
  // no element will follow.
  absl::StatusOr<T> Dequeue() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (elements_.empty() && !ended()) changed_.Wait(&mutex_);
    if (elements_.empty()) return absl::OutOfRangeError("the queue is closed and empty");
    T element = std::move(elements_.front());
    elements_.pop_front();
    changed_.SignalAll();
    return element;
  }

  void Close(bool cancel_pending = false) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    closed_ = true;
    cancelled_ = cancelled_ || cancel_pending;
    changed_.SignalAll();
  }

  bool closed() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return closed_;
  }
  // Returns the number of callers waiting for room.
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return cancelled_ ? 0 : static_cast<size_t>(next_ticket_ - first_ticket_);
  }
  // Returns the number of elements available.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return elements_.size();
  }

 private:
  bool ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return cancelled_ || (closed_ && first_ticket_ == next_ticket_);
  }

  const size_t capacity_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<T> elements_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // The next ticket to issue, and the first one still waiting. Callers get room in ticket order.
  int64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t first_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_BOUNDED_QUEUE_H_
