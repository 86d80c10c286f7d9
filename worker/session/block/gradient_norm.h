#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_NORM_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_NORM_H_

#include "absl/types/span.h"

namespace lockstep {

// In double, in an order that depends on the size alone.
double SumOfSquares(absl::Span<const float> values);

// Returns the factor that scales a vector of this norm down to `limit`, at most 1. NaN for a norm that is not finite,
// as TensorFlow has it.
float ClippingFactor(double norm, float limit);

void Scale(float factor, absl::Span<float> values);

// To an L2 norm of `limit` at most; what is short enough keeps its bits.
void ClipByNorm(float limit, absl::Span<float> values);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_NORM_H_
