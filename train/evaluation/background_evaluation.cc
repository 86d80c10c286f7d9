#include "lockstep/train/evaluation/background_evaluation.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {

BackgroundEvaluation::BackgroundEvaluation(FileSystem* fs, Clock* clock, const config::v1::RunSpec& config,
                                           const std::string& logdir, absl::Duration period)
    : watcher_([&] {
        RunWatcher::Options options;
        options.fs = fs;
        options.clock = clock;
        options.run.logdir = logdir;
        options.every_steps = config.evaluation().every_steps();
        options.report = [this](const std::string& split, const RunEvaluator::Evaluation& evaluation) {
          Say(absl::StrCat("step ", evaluation.step, "  ", EvaluationText(split, evaluation.result)));
        };
        options.cancelled = [this] { return cancelled_.load(); };
        return options;
      }()),
      done_(config.evaluation().every_steps() <= 0 || logdir.empty() || !HasSplit(config, EvaluationSplit(config))),
      task_(
          [&] {
            PeriodicTask::Options options;
            options.clock = clock;
            options.period = done_ ? absl::ZeroDuration() : period;
            return options;
          }(),
          [this] { Look(); }) {}

std::vector<std::string> BackgroundEvaluation::TakeLines() {
  MutexLock lock(&mutex_);
  return std::exchange(lines_, {});
}

void BackgroundEvaluation::Look() {
  if (done_ || cancelled_) return;
  const absl::StatusOr<bool> done = watcher_.RunOnce();
  if (done.ok()) {
    done_ = *done;
  } else if (!absl::IsCancelled(done.status())) {
    done_ = !watcher_.prepared() || !absl::IsDataLoss(done.status());
    Say(absl::StrCat("not evaluated: ", std::string(done.status().message())));
  }
}

void BackgroundEvaluation::Say(std::string line) {
  MutexLock lock(&mutex_);
  lines_.push_back(std::move(line));
}

}  // namespace lockstep
