#include "lockstep/worker/data/prefetched_batches.h"

#include <algorithm>
#include <utility>

namespace lockstep {

PrefetchedBatches::PrefetchedBatches(std::unique_ptr<BatchSource> source, int capacity, Executor* executor,
                                     Clock* clock)
    : source_(std::move(source)),
      capacity_(static_cast<size_t>(std::max(capacity, 1))),
      clock_(clock),
      thread_(executor->Start("batches", [this] { Run(); })) {}

PrefetchedBatches::~PrefetchedBatches() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    work_.Signal();
  }
  thread_->Join();
}

absl::StatusOr<Batch> PrefetchedBatches::Get(int64_t step, int64_t slot) {
  {
    MutexLock lock(&mutex_);
    auto entry = Find(step, slot);
    while (entry != entries_.end() && entry->state == State::kInPreparation) {
      changed_.Wait(&mutex_);
      // Another caller may have taken it.
      entry = Find(step, slot);
    }
    if (entry != entries_.end()) {
      absl::optional<absl::StatusOr<Batch>> result = std::move(entry->result);
      entries_.erase(entry);
      changed_.SignalAll();
      if (HasWork()) work_.Signal();
      if (result.has_value()) {
        ++hits_;
        return *std::move(result);
      }
    }
  }
  return source_->Get(step, slot);
}

void PrefetchedBatches::Prefetch(int64_t step, int64_t slot) {
  MutexLock lock(&mutex_);
  if (Find(step, slot) != entries_.end()) return;
  if (entries_.size() >= capacity_) {
    // Keeps any batch that is in preparation, because it is nearly done.
    const auto oldest = std::find_if(entries_.begin(), entries_.end(),
                                     [](const Entry& entry) { return entry.state != State::kInPreparation; });
    if (oldest == entries_.end()) return;
    entries_.erase(oldest);
  }
  entries_.push_back({step, slot});
  if (HasWork()) work_.Signal();
}

bool PrefetchedBatches::PrepareIfBrief() {
  MutexLock lock(&mutex_);
  const auto hint = NextHint();
  if (hint == entries_.end() || preparation_ > kBrief) return false;
  Prepare(hint);
  return true;
}

void PrefetchedBatches::AwaitIdle() {
  MutexLock lock(&mutex_);
  ++awaiting_idle_;
  work_.Signal();
  while (Count(State::kPrepared) != static_cast<int64_t>(entries_.size())) changed_.Wait(&mutex_);
  --awaiting_idle_;
}

int64_t PrefetchedBatches::hits() const {
  MutexLock lock(&mutex_);
  return hits_;
}

void PrefetchedBatches::Run() {
  mutex_.Lock();
  while (true) {
    auto entry = NextHint();
    if (entry == entries_.end()) {
      while (!HasWork() && !stopping_) work_.Wait(&mutex_);
      entry = NextHint();
    }
    if (stopping_) break;
    Prepare(entry);
  }
  mutex_.Unlock();
}

void PrefetchedBatches::Prepare(std::list<Entry>::iterator hint) {
  // An entry in preparation is never erased, so the iterator stays valid.
  hint->state = State::kInPreparation;
  mutex_.Unlock();
  const absl::Time began = clock_->Now();
  absl::StatusOr<Batch> result = source_->Get(hint->step, hint->slot);
  const absl::Duration took = clock_->Now() - began;
  mutex_.Lock();
  preparation_ = std::min(took, preparation_ + (took - preparation_) / 8);
  hint->result = std::move(result);
  hint->state = State::kPrepared;
  changed_.SignalAll();
}

std::list<PrefetchedBatches::Entry>::iterator PrefetchedBatches::Find(int64_t step, int64_t slot) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.step == step && entry.slot == slot; });
}

int64_t PrefetchedBatches::Count(State state) const {
  return std::count_if(entries_.begin(), entries_.end(), [state](const Entry& entry) { return entry.state == state; });
}

bool PrefetchedBatches::HasWork() const {
  const int64_t hints = Count(State::kHinted);
  return hints > 1 || (hints == 1 && (Count(State::kPrepared) == 0 || awaiting_idle_ > 0));
}

std::list<PrefetchedBatches::Entry>::iterator PrefetchedBatches::NextHint() {
  return std::find_if(entries_.begin(), entries_.end(),
                      [](const Entry& entry) { return entry.state == State::kHinted; });
}

}  // namespace lockstep
