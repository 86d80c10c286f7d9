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
  // Evaluates the values of one step, on data of its own; returns metrics by name. It runs in the thread of the
  // session's caller, and the next step waits for it.
  std::function<absl::StatusOr<std::map<std::string, double>>(const ReadResult& values)> evaluate;
  // What it is given. Empty: all variables.
  std::vector<std::string> variables;
  // Evaluates at the multiples of this many global steps; at least 1.
  int64_t every_n_steps = 100;
  // Stops when the metric was best so many global steps ago; at least 1. nullopt: never.
  absl::optional<int64_t> early_stopping_rounds;
  std::string early_stopping_metric = "loss";
  // Whether less of it is better.
  bool early_stopping_metric_minimize = true;
  // Keeps what evaluate was given at the best step, as a checkpoint "best-<step>", the newest best alone. Empty:
  // nothing. It is created.
  std::string best_checkpoint_directory;
  // Two such monitors of a program need two names.
  std::string name = "ValidationMonitor";
  FileSystem* fs = FileSystem::Real();
  Clock* clock = Clock::Real();
};

// Evaluates the run's values every so many steps, writes the metrics as summaries "validation/<metric>", remembers the
// best step and stops when it is long ago. A tie is not better. Gates where it evaluates, and keeps what it has come to
// in every checkpoint.
class ValidationMonitor : public Hook {
 public:
  // InvalidArgument without evaluate, and names the option that is out of range.
  static absl::StatusOr<std::unique_ptr<ValidationMonitor>> Create(const ValidationOptions& options);

  std::string name() const override { return options_.name; }
  absl::Status Begin() override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return step % options_.every_n_steps == 0; }
  std::string State() const override;
  absl::Status SetState(absl::string_view state) override;

  // Of early_stopping_metric.
  const BestMetric& best() const { return best_; }
  // Of the best step; "" when there is none, and without a directory. After a restart the directory may hold a better
  // one, of a step that is about to be computed again.
  const std::string& best_checkpoint() const { return best_checkpoint_; }
  // All metrics of the evaluation that was the last.
  const std::map<std::string, double>& metrics() const { return metrics_; }

 private:
  ValidationMonitor(const ValidationOptions& options, std::unique_ptr<Saver> saver)
      : options_(options), saver_(std::move(saver)), best_(options.early_stopping_metric_minimize) {}
  absl::Status WriteSummary(Session& session, int64_t step) const;

  const ValidationOptions options_;
  // Null without a directory.
  const std::unique_ptr<Saver> saver_;
  BestMetric best_;
  std::string best_checkpoint_;
  std::map<std::string, double> metrics_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_VALIDATION_MONITOR_H_
