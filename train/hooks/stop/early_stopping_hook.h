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
  // What is watched, after the run that it is given. On the chief a Session::Read in it is of that step. Empty: the
  // loss of the step.
  std::function<absl::StatusOr<double>(Session& session, const RunValues& values)> metric;
  // Stops after so many checks in a row without an improvement; at least 1.
  int64_t patience = 10;
  // An improvement is more than this; at least 0.
  double min_delta = 0;
  // Whether less is better.
  bool minimize = true;
  // Checks at the multiples of this many global steps; at least 1.
  int64_t every_n_steps = 1;
  // A program that is started again after this hook has stopped it takes no step: the chief's run ends again where it
  // stands. False: it continues, and stops at the next check without an improvement.
  bool stay_stopped = false;
  // Two such hooks of a program need two names.
  std::string name = "EarlyStoppingHook";
};

// Stops when a metric no longer improves. What it has seen is in every checkpoint, and it gates where it checks: the
// run ends at the same step however often the chief was killed. A value that is NaN is no improvement.
class EarlyStoppingHook : public Hook {
 public:
  // InvalidArgument names the option that is out of range.
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
  // In a row, without an improvement.
  int64_t checks_ = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_STOP_EARLY_STOPPING_HOOK_H_
