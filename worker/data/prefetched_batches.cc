#include "worker/data/prefetched_batches.h"

#include <algorithm>
#include <utility>

namespace lockstep {

PrefetchedBatches::PrefetchedBatches(std::unique_ptr<BatchSource> source, int capacity)
    : source_(std::move(source)), capacity_(static_cast<size_t>(std::max(capacity, 1))), thread_([this] { Run(); }) {}

PrefetchedBatches::~PrefetchedBatches() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
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
    // The one in preparation stays: its work is nearly done.
    const auto oldest = std::find_if(entries_.begin(), entries_.end(),
                                     [](const Entry& entry) { return entry.state != State::kInPreparation; });
    if (oldest == entries_.end()) return;
    entries_.erase(oldest);
  }
  entries_.push_back({step, slot});
  changed_.SignalAll();
}

void PrefetchedBatches::AwaitIdle() {
  MutexLock lock(&mutex_);
  const auto is_open = [](const Entry& entry) { return entry.state != State::kPrepared; };
  while (std::any_of(entries_.begin(), entries_.end(), is_open)) changed_.Wait(&mutex_);
}

int64_t PrefetchedBatches::hits() const {
  MutexLock lock(&mutex_);
  return hits_;
}

void PrefetchedBatches::Run() {
  mutex_.Lock();
  while (!stopping_) {
    const auto entry = NextHint();
    if (entry == entries_.end()) {
      changed_.Wait(&mutex_);
      continue;
    }
    // Nobody erases an entry in preparation, so the iterator stays good.
    entry->state = State::kInPreparation;
    mutex_.Unlock();
    absl::StatusOr<Batch> result = source_->Get(entry->step, entry->slot);
    mutex_.Lock();
    entry->result = std::move(result);
    entry->state = State::kPrepared;
    changed_.SignalAll();
  }
  mutex_.Unlock();
}

std::list<PrefetchedBatches::Entry>::iterator PrefetchedBatches::Find(int64_t step, int64_t slot) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.step == step && entry.slot == slot; });
}

std::list<PrefetchedBatches::Entry>::iterator PrefetchedBatches::NextHint() {
  return std::find_if(entries_.begin(), entries_.end(),
                      [](const Entry& entry) { return entry.state == State::kHinted; });
}

}  // namespace lockstep
