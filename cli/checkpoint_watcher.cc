#include "cli/checkpoint_watcher.h"

#include <utility>

#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_state.h"

namespace lockstep {

CheckpointWatcher::CheckpointWatcher(Options options) : options_(std::move(options)) {}

absl::StatusOr<bool> CheckpointWatcher::RunOnce() {
  const absl::StatusOr<RunConfig> config = options_.run.LoadConfig(options_.fs);
  if (absl::IsNotFound(config.status())) return false;
  RETURN_IF_ERROR(config.status());
  ASSIGN_OR_RETURN(const std::string directory, options_.run.Directory());
  const absl::optional<std::string> newest = LatestCheckpoint(options_.fs, directory);
  if (!newest.has_value()) return false;
  if (*newest != evaluated_) {
    RETURN_IF_ERROR(Prepare(*config));
    const absl::StatusOr<RunEvaluator::Evaluation> evaluation = evaluator_->EvaluateCheckpoint(*newest);
    if (!evaluation.ok()) {
      if (!CheckpointExists(options_.fs, *newest)) return false;
      return evaluation.status();
    }
    evaluated_ = *newest;
    step_ = evaluation->step;
    options_.report(evaluator_->split(), *evaluation);
    WriteEvents(*evaluation);
  }
  return step_ >= config->training().steps();
}

absl::Status CheckpointWatcher::Prepare(const RunConfig& config) {
  if (evaluator_ != nullptr) return absl::OkStatus();
  const std::string split = options_.split.empty() ? EvaluationSplit(config) : options_.split;
  ASSIGN_OR_RETURN(const std::string directory, options_.run.Directory());
  ASSIGN_OR_RETURN(events_, EventWriter::Create(options_.fs, options_.clock, JoinPath(directory, "eval")));
  ASSIGN_OR_RETURN(evaluator_, RunEvaluator::Create(options_.fs, config, split));
  return absl::OkStatus();
}

void CheckpointWatcher::WriteEvents(const RunEvaluator::Evaluation& evaluation) {
  for (const MetricValue& metric : evaluation.result.metrics) {
    if (metric.matrix.empty()) events_->WriteScalar(metric.name, static_cast<float>(metric.value), evaluation.step);
  }
  // An error is logged by the writer, which tries again.
  events_->Flush().IgnoreError();
}

}  // namespace lockstep
