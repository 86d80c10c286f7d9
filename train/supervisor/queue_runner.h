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

// Threads that fill a queue, joined by a Coordinator: that of a Supervisor or a MonitoredSession, or one of the
// program's own. For what runs beside the steps. What trains is no business of it: a batch is a function of (step,
// slot), whoever computes it when (worker/data/batch_source.h), and is prepared ahead by the worker itself.
//
// A stop of the coordinator closes the queue and cancels who waits for room; an error of a thread stops the
// coordinator. Life: Create, Start, Join of the coordinator. It may be destroyed at any time. Thread-safe.
class QueueRunner {
 public:
  struct Options {
    // Threads are called NAME-0, NAME-1, …
    std::string name = "queue";
    std::shared_ptr<ClosableQueue> queue;
    // Each is called in a thread of its own, again and again, until a stop is requested or it fails; it usually makes
    // one element and enqueues it.
    std::vector<std::function<absl::Status()>> enqueue;
    // An error of these codes is the end of what a thread enqueues; the last thread that ends so closes the queue,
    // whose elements stay. Any other error stops the coordinator and is its error, unless that has been stopped before
    // and the error is Cancelled.
    std::vector<absl::StatusCode> queue_closed_codes = {absl::StatusCode::kOutOfRange};
  };

  // InvalidArgument names the option that is missing or wrong.
  static absl::StatusOr<std::unique_ptr<QueueRunner>> Create(Options options);

  // Starts a thread for each function and returns how many these are: none while any of an earlier Start runs.
  // `coordinator` must outlive the threads.
  size_t Start(Coordinator* coordinator);

 private:
  struct State;

  explicit QueueRunner(Options options);

  // The threads' as well.
  const std::shared_ptr<State> state_;
};

// Starts all of them; returns how many threads.
size_t StartQueueRunners(absl::Span<QueueRunner* const> runners, Coordinator* coordinator);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_QUEUE_RUNNER_H_
