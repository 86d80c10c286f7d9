#include "lockstep/train/hooks/stop/best_metric.h"

#include <cmath>

#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {

bool BestMetric::Observe(int64_t step, double value) {
  if (value_ && !std::isnan(*value_)) {
    const double gain = minimize_ ? *value_ - value : value - *value_;
    // The comparison is also false for a NaN.
    if (!(gain > min_delta_)) return false;
  } else if (value_ && std::isnan(value)) {
    return false;
  }
  value_ = value;
  step_ = step;
  return true;
}

void BestMetric::Save(HookState* state) const {
  state->SetInt("has_best", value_ ? 1 : 0);
  state->SetInt("best_step", step_.value_or(0));
  state->SetDouble("best", value_.value_or(0));
}

absl::Status BestMetric::Restore(const HookState& state) {
  int64_t has_best = 0, step = 0;
  double value = 0;
  RETURN_IF_ERROR(state.GetInt("has_best", &has_best));
  RETURN_IF_ERROR(state.GetInt("best_step", &step));
  RETURN_IF_ERROR(state.GetDouble("best", &value));
  value_.reset();
  step_.reset();
  if (has_best == 0) return absl::OkStatus();
  value_ = value;
  step_ = step;
  return absl::OkStatus();
}

}  // namespace lockstep::train
