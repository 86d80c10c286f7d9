#include "worker/session/gradient_transforms.h"

#include <algorithm>
#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/config_source.h"
#include "common/config/variable_expression.h"

namespace lockstep {
namespace {

// In lanes, so that the compiler may use vectors; the order of the additions depends on the size alone.
double SumOfSquares(absl::Span<const float> values) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (size_t lane = 0; i < values.size(); ++i, ++lane) lanes[lane] += static_cast<double>(values[i]) * values[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

void Scale(float factor, absl::Span<float> values) {
  for (float& value : values) value *= factor;
}

// NaN stays NaN.
void ClipByValue(float limit, absl::Span<float> values) {
  for (float& value : values) value = value > limit ? limit : value < -limit ? -limit : value;
}

// What brings a vector of this norm to `limit` at most. NaN for a norm that is not finite, as TensorFlow has it.
float ClippingFactor(double norm, float limit) {
  if (norm <= limit) return 1;
  return static_cast<float>(limit / norm + (norm - norm));
}

int64_t ElementsOf(const VariableSpec& variable) {
  int64_t elements = 1;
  for (const int64_t dim : variable.shape()) elements *= dim;
  return elements;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GradientTransforms>> GradientTransforms::Create(const OptimizerConfig& config,
                                                                               const ModelSpec& model,
                                                                               GradientSink* sink) {
  auto transforms = absl::WrapUnique(new GradientTransforms(config.clip(), model, sink));
  for (int i = 0; i < config.multipliers_size(); ++i) {
    RETURN_IF_ERROR(
        InField(absl::StrCat("optimizer.multipliers[", i, "]"), transforms->Multiply(config.multipliers(i), model)));
  }
  return transforms;
}

GradientTransforms::GradientTransforms(const OptimizerConfig::Clip& clip, const ModelSpec& model, GradientSink* sink)
    : clip_(clip), sink_(sink) {
  for (const VariableSpec& variable : model.variables()) {
    variables_.push_back({ElementsOf(variable)});
    trainable_ += variable.trainable();
  }
}

absl::Status GradientTransforms::Multiply(const OptimizerConfig::Multiplier& multiplier, const ModelSpec& model) {
  ASSIGN_OR_RETURN(const std::vector<int> matched, FindTrainableVariables(multiplier.variables(), model));
  for (const int i : matched) variables_[i].factor *= multiplier.factor();
  return absl::OkStatus();
}

bool GradientTransforms::OnLoss(float loss) {
  held_.clear();
  return sink_->OnLoss(loss);
}

void GradientTransforms::OnGradient(int variable) {
  const absl::Span<float> gradient = Gradient(variable);
  if (variables_[variable].factor != 1) Scale(variables_[variable].factor, gradient);
  if (clip_.by_value() > 0) ClipByValue(clip_.by_value(), gradient);
  if (clip_.by_norm() > 0) {
    const float factor = ClippingFactor(std::sqrt(SumOfSquares(gradient)), clip_.by_norm());
    if (factor != 1) Scale(factor, gradient);
  }
  if (clip_.by_global_norm() > 0) {
    held_.push_back(variable);
    if (held_.size() == trainable_) ReleaseHeld();
  } else {
    sink_->OnGradient(variable);
  }
}

void GradientTransforms::ReleaseHeld() {
  // In the order of the variables, whatever the order of their gradients.
  std::vector<int> sorted = held_;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (const int variable : sorted) sum += SumOfSquares(Gradient(variable));
  const float factor = ClippingFactor(std::sqrt(sum), clip_.by_global_norm());
  for (const int variable : held_) {
    if (factor != 1) Scale(factor, Gradient(variable));
    sink_->OnGradient(variable);
  }
  held_.clear();
}

absl::Span<float> GradientTransforms::Gradient(int variable) {
  return absl::MakeSpan(sink_->GradientBuffer(variable), static_cast<size_t>(variables_[variable].elements));
}

}  // namespace lockstep
