#ifndef LOCKSTEP_TRAIN_HOOKS_STOP_EARLY_STOPPING_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_STOP_EARLY_STOPPING_HOOK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/stop/best_metric.h"

namespace lockstep::train {

struct EarlyStoppingOptions {
  // Returns the metric after the given run. On the chief, a Session::Read in it returns values of that step. If null,
  // the metric is the step's loss.
  std::function<absl::StatusOr<double>(Session& session, const RunValues& values)> metric;
  // Stops after this many consecutive checks without an improvement; at least 1.
  int64_t patience = 10;
  // The difference that an improvement must exceed; at least 0.
  double min_delta = 0;
  // True if a smaller value is better.
  bool minimize = true;
  // Checks at every multiple of this many global steps; at least 1.
  int64_t every_n_steps = 1;
  // If true, a program that is started again after this hook has stopped it takes no step: the chief's run ends again
  // at the same step. If false, it continues, and stops at the next check without an improvement.
  bool stay_stopped = false;
  // Must differ between the early stopping hooks of a program.
  std::string name = "EarlyStoppingHook";
};

// A hook that stops when a metric no longer improves. Every checkpoint holds its state, and it gates the steps at which
// it checks, so the run ends at the same step however often the chief is killed. A NaN is not an improvement.
class EarlyStoppingHook : public Hook {
 public:
  // Returns InvalidArgument naming the option that is out of range.
  static absl::StatusOr<std::unique_ptr<EarlyStoppingHook>> Create(const EarlyStoppingOptions& options);

  std::string name() const override { return options_.name; }
  absl::Status AfterCreateSession(Session& session) override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return step % options_.every_n_steps == 0; }
  std::string State() const override;
  absl::Status SetState(absl::string_view state) override;

  const BestMetric& best() const { return best_; }

 private:
  explicit EarlyStoppingHook(const EarlyStoppingOptions& options)
      : options_(options), best_(options.minimize, options.min_delta) {}

  const EarlyStoppingOptions options_;
  BestMetric best_;
  // The number of consecutive checks without an improvement.
  int64_t checks_ = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_STOP_EARLY_STOPPING_HOOK_H_
