#ifndef LOCKSTEP_KERNELS_NN_LOCAL_RESPONSE_H_
#define LOCKSTEP_KERNELS_NN_LOCAL_RESPONSE_H_

#include <cstdint>

namespace lockstep {

// Normalization of each element by its neighbors in a row (Krizhevsky et al. 2012): y[i] = x[i] s[i]^-beta with s[i] =
// bias + alpha * the sum of x[j]^2 over j from i - radius to i + radius within the row. A power is computed as e^(-beta
// ln s) (math.h). radius >= 0, bias > 0, alpha >= 0.
struct LocalResponse {
  int64_t radius = 0;
  float bias = 0;
  float alpha = 0;
  float beta = 0;
};

// Normalizes each row of `columns` elements separately and writes s to `scales`. The terms of a sum are added from the
// first j to the last. y may be x.
void NormalizeLocalResponse(const LocalResponse& f, int64_t rows, int64_t columns, const float* x, float* scales,
                            float* y);

// dx[i] = dy[i] s[i]^-beta - (2 alpha beta) x[i] * the sum of dy[j] y[j] / s[j] over the same j. dx may be dy.
void LocalResponseGradient(const LocalResponse& f, int64_t rows, int64_t columns, const float* x, const float* scales,
                           const float* y, const float* dy, float* dx);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_LOCAL_RESPONSE_H_
