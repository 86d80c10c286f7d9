#include "lockstep/worker/session/block/gradient_transforms.h"

#include <algorithm>
#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/config/validation/variable_expression.h"
#include "lockstep/worker/session/block/gradient_norm.h"

namespace lockstep {
namespace {

// Leaves NaN unchanged.
void ClipByValue(float limit, absl::Span<float> values) {
  for (float& value : values) value = value > limit ? limit : value < -limit ? -limit : value;
}

int64_t ElementsOf(const v1::VariableSpec& variable) {
  int64_t elements = 1;
  for (const int64_t dim : variable.shape()) elements *= dim;
  return elements;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GradientTransforms>> GradientTransforms::Create(
    const config::v1::OptimizerConfig& config, const v1::ModelSpec& model, GradientSink* sink) {
  auto transforms = absl::WrapUnique(new GradientTransforms(config.clip(), model, sink));
  for (int i = 0; i < config.multipliers_size(); ++i) {
    RETURN_IF_ERROR(
        InField(absl::StrCat("optimizer.multipliers[", i, "]"), transforms->Multiply(config.multipliers(i), model)));
  }
  return transforms;
}

GradientTransforms::GradientTransforms(const config::v1::OptimizerConfig::Clip& clip, const v1::ModelSpec& model,
                                       GradientSink* sink)
    : ForwardingSink(sink), clip_(clip) {
  for (const v1::VariableSpec& variable : model.variables()) {
    variables_.push_back({ElementsOf(variable)});
    trainable_ += variable.trainable();
  }
}

absl::Status GradientTransforms::Multiply(const config::v1::OptimizerConfig::Multiplier& multiplier,
                                          const v1::ModelSpec& model) {
  ASSIGN_OR_RETURN(const std::vector<int> matched, FindTrainableVariables(multiplier.variables(), model));
  for (const int i : matched) variables_[i].factor *= multiplier.factor();
  return absl::OkStatus();
}

bool GradientTransforms::OnLoss(float loss) {
  held_.clear();
  return sink()->OnLoss(loss);
}

void GradientTransforms::OnGradient(int variable) {
  const absl::Span<float> gradient = Gradient(variable);
  if (variables_[variable].factor != 1) Scale(variables_[variable].factor, gradient);
  if (clip_.by_value() > 0) ClipByValue(clip_.by_value(), gradient);
  if (clip_.by_norm() > 0) ClipByNorm(clip_.by_norm(), gradient);
  if (clip_.by_global_norm() > 0) {
    held_.push_back(variable);
    if (held_.size() == trainable_) ReleaseHeld();
  } else {
    sink()->OnGradient(variable);
  }
}

void GradientTransforms::ReleaseHeld() {
  // Sums in the order of the variables, regardless of the order of their gradients.
  std::vector<int> sorted = held_;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (const int variable : sorted) sum += SumOfSquares(Gradient(variable));
  const float factor = ClippingFactor(std::sqrt(sum), clip_.by_global_norm());
  for (const int variable : held_) {
    if (factor != 1) Scale(factor, Gradient(variable));
    sink()->OnGradient(variable);
  }
  held_.clear();
}

absl::Span<float> GradientTransforms::Gradient(int variable) {
  return absl::MakeSpan(sink()->GradientBuffer(variable), static_cast<size_t>(variables_[variable].elements));
}

}  // namespace lockstep
