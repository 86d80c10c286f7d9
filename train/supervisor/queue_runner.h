#ifndef LOCKSTEP_TRAIN_SUPERVISOR_QUEUE_RUNNER_H_
#define LOCKSTEP_TRAIN_SUPERVISOR_QUEUE_RUNNER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/train/supervisor/bounded_queue.h"
#include "lockstep/train/supervisor/coordinator.h"

namespace lockstep::train {

// Runs threads that fill a queue. They are joined by a Coordinator: that of a Supervisor or a MonitoredSession, or the
// program's own. Intended for work outside the steps, not for training data: a batch is a function of (step, slot),
// whichever process computes it (worker/data/batch_source.h), and the worker itself prepares it ahead of time.
//
// When the coordinator stops, the queue is closed, and calls that wait for room are cancelled. An error in a thread
// stops the coordinator. Life cycle: Create, Start, then Join of the coordinator. May be destroyed at any time.
// Thread-safe.
class QueueRunner {
 public:
  struct Options {
    // The threads are named NAME-0, NAME-1, …
    std::string name = "queue";
    std::shared_ptr<ClosableQueue> queue;
    // Each function is called repeatedly in its own thread, until a stop is requested or the function fails. It usually
    // creates and enqueues one element.
    std::vector<std::function<absl::Status()>> enqueue;
    // An error with one of these codes ends a thread without failure. When the last thread ends this way, the queue is
    // closed, but its elements stay. Any other error stops the coordinator and becomes its error, unless the error is
    // Cancelled and the coordinator was already stopped.
    std::vector<absl::StatusCode> queue_closed_codes = {absl::StatusCode::kOutOfRange};
  };

  // Returns InvalidArgument naming a missing or wrong option.
  static absl::StatusOr<std::unique_ptr<QueueRunner>> Create(Options options);

  // Starts one thread per function. Returns the number of threads started, which is 0 while a thread from an earlier
  // Start is running. `coordinator` must outlive the threads.
  size_t Start(Coordinator* coordinator);

 private:
  struct State;

  explicit QueueRunner(Options options);

  // Shared with the threads.
  const std::shared_ptr<State> state_;
};

// Starts all runners. Returns the number of threads started.
size_t StartQueueRunners(absl::Span<QueueRunner* const> runners, Coordinator* coordinator);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_QUEUE_RUNNER_H_
