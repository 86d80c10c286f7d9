#include "lockstep/train/supervisor/queue_runner.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep::train {
namespace {

absl::Status CheckOptions(const QueueRunner::Options& options) {
  if (options.queue == nullptr) return absl::InvalidArgumentError("QueueRunner's queue is missing");
  if (options.enqueue.empty()) return absl::InvalidArgumentError("QueueRunner's enqueue has no function");
  if (absl::c_any_of(options.enqueue, [](const auto& function) { return !function; })) {
    return absl::InvalidArgumentError("QueueRunner's enqueue has an empty function");
  }
  if (options.queue_closed_codes.empty()) {
    return absl::InvalidArgumentError("QueueRunner's queue_closed_codes are empty: give kOutOfRange or another code");
  }
  if (absl::c_linear_search(options.queue_closed_codes, absl::StatusCode::kOk)) {
    return absl::InvalidArgumentError("QueueRunner's queue_closed_codes have kOk, which is no error");
  }
  return absl::OkStatus();
}

}  // namespace

struct QueueRunner::State {
  explicit State(Options options) : options(std::move(options)) {}

  // Runs one thread of the runner. Returns OK if `enqueue` reported the end of its elements or a stop was requested.
  absl::Status Run(const std::function<absl::Status()>& enqueue, const Coordinator& coordinator)
      ABSL_LOCKS_EXCLUDED(mutex) {
    absl::Status status;
    while (status.ok() && !coordinator.ShouldStop()) status = enqueue();
    const bool at_end = absl::c_linear_search(options.queue_closed_codes, status.code());
    bool last = false;
    {
      MutexLock lock(&mutex);
      last = --running == 0;
    }
    if (!at_end) return status;
    if (last) options.queue->Close(/*cancel_pending=*/false);
    return absl::OkStatus();
  }

  const Options options;
  Mutex mutex;
  // The number of running threads.
  size_t running ABSL_GUARDED_BY(mutex) = 0;
};

absl::StatusOr<std::unique_ptr<QueueRunner>> QueueRunner::Create(Options options) {
  const absl::Status status = CheckOptions(options);
  if (!status.ok()) return status;
  return absl::WrapUnique(new QueueRunner(std::move(options)));
}

QueueRunner::QueueRunner(Options options) : state_(std::make_shared<State>(std::move(options))) {}

size_t QueueRunner::Start(Coordinator* coordinator) {
  const Options& options = state_->options;
  {
    MutexLock lock(&state_->mutex);
    if (state_->running > 0) return 0;
    state_->running = options.enqueue.size();
  }
  coordinator->OnStop([queue = options.queue] { queue->Close(/*cancel_pending=*/true); });
  for (size_t i = 0; i < options.enqueue.size(); ++i) {
    coordinator->StartThread(absl::StrCat(options.name, "-", i), [state = state_, coordinator, i] {
      return state->Run(state->options.enqueue[i], *coordinator);
    });
  }
  return options.enqueue.size();
}

size_t StartQueueRunners(absl::Span<QueueRunner* const> runners, Coordinator* coordinator) {
  size_t threads = 0;
  for (QueueRunner* const runner : runners) threads += runner->Start(coordinator);
  return threads;
}

}  // namespace lockstep::train
