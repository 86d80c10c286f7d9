#include "worker/train/checkpoint_iterator.h"

#include <utility>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_state.h"
#include "glog/logging.h"

namespace lockstep {

CheckpointIterator::CheckpointIterator(FileSystem* fs, std::string directory, CheckpointIteratorOptions options)
    : fs_(fs), directory_(std::move(directory)), options_(std::move(options)) {}

absl::optional<std::string> CheckpointIterator::Next() {
  if (!SleepUntil(next_start_)) return absl::nullopt;
  absl::optional<std::string> checkpoint = WaitForNewCheckpoint(last_);
  while (!checkpoint.has_value()) {
    if (stopped() || !options_.timed_out || options_.timed_out()) return absl::nullopt;
    checkpoint = WaitForNewCheckpoint(last_);
  }
  last_ = *checkpoint;
  next_start_ = options_.clock->Now() + options_.min_interval;
  return checkpoint;
}

absl::optional<std::string> CheckpointIterator::WaitForNewCheckpoint(absl::string_view last) {
  const absl::Time deadline = options_.clock->Now() + options_.timeout;
  while (!stopped()) {
    const absl::StatusOr<absl::optional<std::string>> newest = LatestCheckpoint(fs_, directory_);
    LOG_IF(ERROR, !newest.ok()) << "looking again for the newest checkpoint: " << newest.status();
    if (newest.ok() && newest->has_value() && **newest != last) return *newest;
    const absl::Time next_look = options_.clock->Now() + options_.poll_interval;
    if (next_look > deadline || !SleepUntil(next_look)) break;
  }
  return absl::nullopt;
}

void CheckpointIterator::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  stop_requested_.SignalAll();
}

bool CheckpointIterator::SleepUntil(absl::Time time) {
  MutexLock lock(&mutex_);
  while (!stopped_ && !options_.clock->WaitUntil(&stop_requested_, &mutex_, time)) {
  }
  return !stopped_;
}

bool CheckpointIterator::stopped() const {
  MutexLock lock(&mutex_);
  return stopped_;
}

}  // namespace lockstep
