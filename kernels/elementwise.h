#ifndef LOCKSTEP_KERNELS_ELEMENTWISE_H_
#define LOCKSTEP_KERNELS_ELEMENTWISE_H_

#include <cstdint>

namespace lockstep {

// z[i] = x[i] + y[i]; z may be x or y.
void AddElements(int64_t size, const float* x, const float* y, float* z);

// The sums of |w[i]| and of w[i]^2. Element i is added to sum i % 8, a chain in the order of i (fused multiply-adds for
// the squares). The eight sums are added as ((s0+s4)+(s2+s6)) + ((s1+s5)+(s3+s7)).
struct PenaltySums {
  float absolute;
  float squares;
};
PenaltySums SumPenalties(int64_t size, const float* w);

// g[i] += l2 w[i], fused, and then g[i] += l1 sign(w[i]) unless l1 is 0.
void AddPenaltyGradient(float l1, float l2, int64_t size, const float* w, float* g);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_ELEMENTWISE_H_
