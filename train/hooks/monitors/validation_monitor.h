#ifndef LOCKSTEP_TRAIN_HOOKS_MONITORS_VALIDATION_MONITOR_H_
#define LOCKSTEP_TRAIN_HOOKS_MONITORS_VALIDATION_MONITOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/stop/best_metric.h"
#include "lockstep/train/saver/saver.h"

namespace lockstep::train {

struct ValidationOptions {
  // Evaluates the values of one step on its own data, and returns metrics by name. Called in the thread of the
  // session's caller, while the next step waits.
  std::function<absl::StatusOr<std::map<std::string, double>>(const ReadResult& values)> evaluate;
  // The variables that `evaluate` receives. If empty, it receives all.
  std::vector<std::string> variables;
  // Evaluates at every multiple of this many global steps; at least 1.
  int64_t every_n_steps = 100;
  // Stops when the best value of the metric is this many global steps old; at least 1. If nullopt, never stops.
  absl::optional<int64_t> early_stopping_rounds;
  std::string early_stopping_metric = "loss";
  // True if a smaller value of the metric is better.
  bool early_stopping_metric_minimize = true;
  // The directory for a checkpoint "best-<step>" of the values that `evaluate` received at the best step. Only the
  // newest one is kept. The directory is created if it does not exist. If empty, no checkpoint is kept.
  std::string best_checkpoint_directory;
  // Must differ between the validation monitors of a program.
  std::string name = "ValidationMonitor";
  FileSystem* fs = FileSystem::Real();
  Clock* clock = Clock::Real();
};

// A hook that evaluates the run's values periodically, writes the metrics as summaries "validation/<metric>", remembers
// the best step, and stops when that step is too old. A tie is not an improvement. It gates the steps at which it
// evaluates, and keeps its state in every checkpoint.
class ValidationMonitor : public Hook {
 public:
  // Returns InvalidArgument if there is no `evaluate`, or an option is out of range.
  static absl::StatusOr<std::unique_ptr<ValidationMonitor>> Create(const ValidationOptions& options);

  std::string name() const override { return options_.name; }
  absl::Status Begin() override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return step % options_.every_n_steps == 0; }
  std::string State() const override;
  absl::Status SetState(absl::string_view state) override;

  // The best value of early_stopping_metric.
  const BestMetric& best() const { return best_; }
  // The prefix of the best step's checkpoint; "" if there is no best step or no directory. After a restart, the
  // directory may hold a better one from a step that the run is about to recompute.
  const std::string& best_checkpoint() const { return best_checkpoint_; }
  // All metrics of the last evaluation.
  const std::map<std::string, double>& metrics() const { return metrics_; }

 private:
  ValidationMonitor(const ValidationOptions& options, std::unique_ptr<Saver> saver)
      : options_(options), saver_(std::move(saver)), best_(options.early_stopping_metric_minimize) {}
  absl::Status WriteSummary(Session& session, int64_t step) const;

  const ValidationOptions options_;
  // Null if there is no directory.
  const std::unique_ptr<Saver> saver_;
  BestMetric best_;
  std::string best_checkpoint_;
  std::map<std::string, double> metrics_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_VALIDATION_MONITOR_H_
