#ifndef LOCKSTEP_WORKER_DATA_PREFETCHED_BATCHES_H_
#define LOCKSTEP_WORKER_DATA_PREFETCHED_BATCHES_H_

#include <cstdint>
#include <list>
#include <memory>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/worker/data/batch_source.h"

namespace lockstep {

// Prepares hinted batches in a thread of its own, so that Get finds them ready; the results are those of
// the source behind it. Holds at most `capacity` hints and prepared batches: a further hint displaces the
// oldest. The thread begins when two hints wait or no batch is ready: to wake it for each hint would cost a short step
// a tenth of its time. A caller that would sleep prepares what is quickly prepared itself (PrepareIfBrief): on a
// machine with fewer processors than threads that work, the thread takes one from a worker that computes. The
// destructor waits for the batch in preparation, no Get may run then. Thread-safe.
class PrefetchedBatches : public BatchSource {
 public:
  // What takes longer to prepare is left to the thread: about as long as it takes to wake one.
  static constexpr absl::Duration kBrief = absl::Microseconds(100);

  explicit PrefetchedBatches(std::unique_ptr<BatchSource> source, int capacity = 3,
                             Executor* executor = Executor::Threads(), Clock* clock = Clock::Real());
  ~PrefetchedBatches() override;

  const ExampleSpec& spec() const override { return source_->spec(); }
  // Takes the prepared batch, waits for the one in preparation, or computes it.
  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Prefetch(int64_t step, int64_t slot) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool PrepareIfBrief() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class PrefetchedBatchesTest;

  enum class State { kHinted, kInPreparation, kPrepared };
  struct Entry {
    int64_t step;
    int64_t slot;
    State state = State::kHinted;
    absl::optional<absl::StatusOr<Batch>> result = absl::nullopt;
  };

  // For tests: blocks until every hint is prepared or displaced.
  void AwaitIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  // For tests: the batches that Get found prepared or in preparation.
  int64_t hits() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Prepares a hinted batch; releases the mutex meanwhile.
  void Prepare(std::list<Entry>::iterator hint) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Entry>::iterator Find(int64_t step, int64_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Entry>::iterator NextHint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t Count(State state) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // There is a hint, and a reason not to wait for another.
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<BatchSource> source_;
  const size_t capacity_;
  Clock* const clock_;

  mutable Mutex mutex_;
  // For the thread: HasWork, or stopping_.
  CondVar work_;
  // For the others: an entry has changed.
  CondVar changed_;
  // Oldest first.
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  int64_t hits_ ABSL_GUARDED_BY(mutex_) = 0;
  // How long a batch takes to prepare: at once as short as the last one, longer only by and by, as a thread that lost
  // its processor meanwhile says nothing.
  absl::Duration preparation_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  // Callers of AwaitIdle.
  int awaiting_idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_PREFETCHED_BATCHES_H_
