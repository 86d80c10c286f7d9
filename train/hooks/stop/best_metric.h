#ifndef LOCKSTEP_TRAIN_HOOKS_STOP_BEST_METRIC_H_
#define LOCKSTEP_TRAIN_HOOKS_STOP_BEST_METRIC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook_state.h"

namespace lockstep::train {

// The best value of a metric so far, and its global step. A value is better if it is less than the best (more, if not
// minimizing) by more than `min_delta`. A tie is not better, and neither is a NaN unless it is the first value. A value
// type.
class BestMetric {
 public:
  explicit BestMetric(bool minimize = true, double min_delta = 0) : minimize_(minimize), min_delta_(min_delta) {}

  // Records `value` if it is the best so far, and returns true in that case.
  bool Observe(int64_t step, double value);
  // Returns the number of global steps since the best value, or 0 if there is none.
  int64_t StepsSince(int64_t step) const { return step_ ? step - *step_ : 0; }

  const absl::optional<double>& value() const { return value_; }
  const absl::optional<int64_t>& step() const { return step_; }

  void Save(HookState* state) const;
  absl::Status Restore(const HookState& state);

 private:
  bool minimize_;
  double min_delta_;
  absl::optional<double> value_;
  absl::optional<int64_t> step_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_STOP_BEST_METRIC_H_
