#include "lockstep/train/evaluation/checkpoints_iterator.h"

#include <utility>

#include "absl/status/statusor.h"
#include "glog/logging.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/session/end/pause.h"

namespace lockstep::train {

absl::optional<std::string> WaitForNewCheckpoint(const std::string& directory, absl::string_view last,
                                                 const CheckpointWait& wait) {
  const absl::Time deadline = wait.clock->Now() + wait.timeout;
  while (wait.stop == nullptr || !wait.stop->requested()) {
    const absl::StatusOr<absl::optional<std::string>> newest = LatestCheckpoint(directory, "checkpoint", wait.fs);
    LOG_IF(ERROR, !newest.ok()) << "looking again for the newest checkpoint: " << newest.status();
    if (newest.ok() && newest->has_value() && **newest != last) return *newest;
    if (wait.clock->Now() + wait.poll_interval > deadline) break;
    if (!Pause(wait.poll_interval, wait.clock, wait.stop).ok()) break;
  }
  return absl::nullopt;
}

CheckpointsIterator::CheckpointsIterator(std::string directory, CheckpointsIteratorOptions options)
    : directory_(std::move(directory)), options_(std::move(options)) {}

absl::optional<std::string> CheckpointsIterator::Next() {
  const CheckpointWait& wait = options_.wait;
  const absl::Duration early = next_start_ - wait.clock->Now();
  if (early > absl::ZeroDuration() && !Pause(early, wait.clock, wait.stop).ok()) return absl::nullopt;
  absl::optional<std::string> checkpoint = WaitForNewCheckpoint(directory_, last_, wait);
  while (!checkpoint.has_value()) {
    if (wait.stop != nullptr && wait.stop->requested()) return absl::nullopt;
    if (!options_.timeout_fn || options_.timeout_fn()) return absl::nullopt;
    checkpoint = WaitForNewCheckpoint(directory_, last_, wait);
  }
  last_ = *checkpoint;
  next_start_ = wait.clock->Now() + options_.min_interval;
  return checkpoint;
}

}  // namespace lockstep::train
