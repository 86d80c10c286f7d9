#include "lockstep/train/evaluation/run_evaluation.h"

#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/train/evaluation/run_watcher.h"
#include "lockstep/train/session/end/pause.h"

namespace lockstep::train {

absl::Status EvaluateRun(const RunEvaluationOptions& options) {
  RunWatcher::Options watched;
  watched.fs = options.fs;
  watched.clock = options.clock;
  watched.run.logdir = options.logdir;
  watched.report = [](const std::string& split, const RunEvaluator::Evaluation& evaluation) {
    LOG(INFO) << "step " << evaluation.step << "  " << EvaluationText(split, evaluation.result);
  };
  watched.cancelled = [&options] { return options.stop != nullptr && options.stop->requested(); };
  RunWatcher watcher(std::move(watched));
  while (true) {
    // Must precede the check: once the run is finished, its newest checkpoint no longer changes.
    const auto record = ReadRunRecord(options.fs, options.logdir);
    const bool finished = record.ok() && record->has_value() && (*record)->finished();
    const absl::StatusOr<bool> evaluated_last = watcher.RunOnce();
    if (evaluated_last.ok() && (*evaluated_last || finished)) return absl::OkStatus();
    if (!evaluated_last.ok() && !(watcher.prepared() && absl::IsDataLoss(evaluated_last.status()))) {
      return evaluated_last.status();
    }
    LOG_IF(ERROR, !evaluated_last.ok()) << "not evaluated: " << evaluated_last.status().message();
    RETURN_IF_ERROR(Pause(options.period, options.clock, options.stop));
  }
}

}  // namespace lockstep::train
