#include "lockstep/train/evaluation/run_watcher.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/train/events/event_writer_cache.h"

namespace lockstep {

RunWatcher::RunWatcher(Options options) : options_(std::move(options)) {}

absl::StatusOr<bool> RunWatcher::RunOnce() {
  const absl::StatusOr<config::v1::RunSpec> config = options_.run.LoadConfig(options_.fs);
  if (absl::IsNotFound(config.status())) return false;
  RETURN_IF_ERROR(config.status());
  ASSIGN_OR_RETURN(const std::string directory, options_.run.Directory());
  const absl::StatusOr<absl::optional<std::string>> latest = LatestCheckpoint(options_.fs, directory);
  LOG_IF(ERROR, !latest.ok()) << "looking again for the newest checkpoint: " << latest.status();
  if (!latest.ok() || !latest->has_value()) return false;
  const std::string& newest = **latest;
  // If no step bounds the run, the watch continues until the caller stops.
  const int64_t last_step =
      config->training().steps() > 0 ? config->training().steps() : std::numeric_limits<int64_t>::max();
  const int64_t step = StepOfCheckpoint(newest).value_or(last_step);
  const bool is_due = step >= step_ + options_.every_steps || step >= last_step;
  if (newest != evaluated_ && is_due) {
    RETURN_IF_ERROR(Prepare(*config));
    const absl::StatusOr<std::string> before = Identity(newest);
    const absl::StatusOr<RunEvaluator::Evaluation> evaluation =
        evaluator_->EvaluateCheckpoint(newest, options_.cancelled);
    if (absl::IsCancelled(evaluation.status())) return evaluation.status();
    if (!evaluation.ok()) {
      const absl::StatusOr<std::string> now = Identity(newest);
      if (absl::IsNotFound(now.status()) || (now.ok() && (!before.ok() || *now != *before))) return false;
    }
    evaluated_ = newest;
    RETURN_IF_ERROR(evaluation.status());
    step_ = evaluation->step;
    options_.report(evaluator_->split(), *evaluation);
    WriteEvaluation(*evaluation, events_.get());
  }
  return step_ >= last_step;
}

absl::Status RunWatcher::Prepare(const config::v1::RunSpec& config) {
  if (evaluator_ != nullptr) return absl::OkStatus();
  const std::string split = options_.split.empty() ? EvaluationSplit(config) : options_.split;
  ASSIGN_OR_RETURN(const std::string directory, options_.run.Directory());
  // TensorBoard shows one curve per directory.
  const std::string events = split == EvaluationSplit(config) ? "eval" : absl::StrCat("eval_", split);
  ASSIGN_OR_RETURN(events_,
                   EventWriterCache::OfProcess()->Get(options_.fs, options_.clock, JoinPath(directory, events)));
  ASSIGN_OR_RETURN(evaluator_, RunEvaluator::Create(options_.fs, config, split, SourceOf(options_.run)));
  return absl::OkStatus();
}

absl::StatusOr<std::string> RunWatcher::Identity(const std::string& prefix) const {
  ASSIGN_OR_RETURN(const auto index, options_.fs->NewRandomAccessFile(IndexPath(prefix)));
  std::string contents(index->size(), '\0');
  RETURN_IF_ERROR(index->Read(0, contents.size(), contents.data()));
  return absl::StrCat(absl::ToUnixNanos(index->modification_time()), " ", contents);
}

void WriteEvaluation(const RunEvaluator::Evaluation& evaluation, EventWriter* events) {
  for (const MetricValue& metric : evaluation.result.metrics) {
    if (metric.matrix.empty()) events->WriteScalar(metric.name, static_cast<float>(metric.value), evaluation.step);
  }
  // The writer logs errors and retries.
  events->Flush().IgnoreError();
}

}  // namespace lockstep
