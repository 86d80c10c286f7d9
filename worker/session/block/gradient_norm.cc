#include "lockstep/worker/session/block/gradient_norm.h"

#include <cmath>
#include <cstddef>

namespace lockstep {

double SumOfSquares(absl::Span<const float> values) {
  // Sums in lanes so that the compiler can use vector instructions.
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

float ClippingFactor(double norm, float limit) {
  if (norm <= limit) return 1;
  return static_cast<float>(limit / norm + (norm - norm));
}

void Scale(float factor, absl::Span<float> values) {
  for (float& value : values) value *= factor;
}

void ClipByNorm(float limit, absl::Span<float> values) {
  const float factor = ClippingFactor(std::sqrt(SumOfSquares(values)), limit);
  if (factor != 1) Scale(factor, values);
}

}  // namespace lockstep
