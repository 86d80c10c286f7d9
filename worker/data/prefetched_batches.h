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

// A batch source that prepares hinted batches on its own thread, so that Get finds them ready. Returns the same batches
// as the underlying source. Holds at most `capacity` hints and prepared batches; a further hint displaces the oldest.
// The thread starts when two hints are waiting or no batch is ready, because waking it for each hint would cost a short
// step a tenth of its time. A caller that would otherwise sleep prepares quick batches itself (PrepareIfBrief): if
// there are fewer processors than busy threads, this thread would take a processor away from a computing worker. The
// destructor waits for the batch in preparation; no Get may be running then. Thread-safe.
class PrefetchedBatches : public BatchSource {
 public:
  // Batches that take longer are left to the thread, because waking it takes about this long.
  static constexpr absl::Duration kBrief = absl::Microseconds(100);

  explicit PrefetchedBatches(std::unique_ptr<BatchSource> source, int capacity = 3,
                             Executor* executor = Executor::Threads(), Clock* clock = Clock::Real());
  ~PrefetchedBatches() override;

  const ExampleSpec& spec() const override { return source_->spec(); }
  // Returns the prepared batch, waits for the one in preparation, or computes it.
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

  // Blocks until every hint is prepared or displaced. Used by tests.
  void AwaitIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of batches that Get found prepared or in preparation. Used by tests.
  int64_t hits() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Prepares a hinted batch. Releases the mutex while doing so.
  void Prepare(std::list<Entry>::iterator hint) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Entry>::iterator Find(int64_t step, int64_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Entry>::iterator NextHint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t Count(State state) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if a hint is waiting and its preparation need not wait for another hint.
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<BatchSource> source_;
  const size_t capacity_;
  Clock* const clock_;

  mutable Mutex mutex_;
  // Wakes the thread on HasWork or stopping_.
  CondVar work_;
  // Wakes other threads after an entry has changed.
  CondVar changed_;
  // The oldest entry is first.
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  int64_t hits_ ABSL_GUARDED_BY(mutex_) = 0;
  // Estimated time to prepare a batch. Falls immediately to the last measurement but rises only gradually, because the
  // time measured by a preempted thread is too long.
  absl::Duration preparation_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  // Number of callers in AwaitIdle.
  int awaiting_idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_PREFETCHED_BATCHES_H_
