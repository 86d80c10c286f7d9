#include "lockstep/train/slim/gradients.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/session/block/gradient_norm.h"

namespace lockstep::train::slim {
namespace {

float FactorAt(const GradientMultiplier& multiplier, int64_t global_step) {
  if (const float* const factor = std::get_if<float>(&multiplier)) return *factor;
  return std::get<1>(multiplier)(global_step);
}

}  // namespace

absl::Status MultiplyGradients(std::vector<GradientAndVariable>& grads_and_vars,
                               const GradientMultipliers& gradient_multipliers, int64_t global_step) {
  if (gradient_multipliers.empty()) return absl::InvalidArgumentError("gradient_multipliers: is empty");
  for (GradientAndVariable& pair : grads_and_vars) {
    const auto multiplier = gradient_multipliers.find(*pair.variable);
    if (multiplier == gradient_multipliers.end()) continue;
    if (!pair.has_gradient()) {
      return absl::InvalidArgumentError(
          absl::StrCat("gradient_multipliers: has ", pair.variable->name(), ", which has no gradient"));
    }
    const float factor = FactorAt(multiplier->second, global_step);
    if (factor != 1) Scale(factor, pair.gradient);
  }
  return absl::OkStatus();
}

void ClipGradientNorms(std::vector<GradientAndVariable>& grads_and_vars, float max_norm) {
  for (GradientAndVariable& pair : grads_and_vars) {
    if (pair.has_gradient()) ClipByNorm(max_norm, pair.gradient);
  }
}

TransformGradsFn ClipGradientNormsFn(float max_norm) {
  return [max_norm](std::vector<GradientAndVariable>& grads_and_vars, int64_t) {
    ClipGradientNorms(grads_and_vars, max_norm);
    return absl::OkStatus();
  };
}

absl::Status AddGradientsSummaries(const std::vector<GradientAndVariable>& grads_and_vars, SummaryBuilder* summaries) {
  for (const GradientAndVariable& pair : grads_and_vars) {
    const std::string& name = pair.variable->name();
    if (!pair.has_gradient()) {
      LOG(INFO) << "Var " << name << " has no gradient";
      continue;
    }
    RETURN_IF_ERROR(summaries->AddHistogram(absl::StrCat(name, "/gradient"), pair.gradient));
    summaries->AddScalar(absl::StrCat(name, "/gradient_norm"),
                         static_cast<float>(std::sqrt(SumOfSquares(pair.gradient))));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::train::slim
