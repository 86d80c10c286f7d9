#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_NORM_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_NORM_H_

#include "absl/types/span.h"

namespace lockstep {

// Returns the sum of squares, computed in double precision in an order that depends only on the size.
double SumOfSquares(absl::Span<const float> values);

// Returns the factor, at most 1, that scales a vector of this norm down to `limit`. Like TensorFlow, returns NaN if the
// norm is not finite.
float ClippingFactor(double norm, float limit);

void Scale(float factor, absl::Span<float> values);

// Scales `values` down to an L2 norm of at most `limit`. Vectors that are within the limit are not changed.
void ClipByNorm(float limit, absl::Span<float> values);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_NORM_H_
