#ifndef LOCKSTEP_KERNELS_MATH_H_
#define LOCKSTEP_KERNELS_MATH_H_

#include <cstdint>

namespace lockstep {

// y[i] = f(x[i]); y may be x. math-inl.h describes how f is computed. Each result depends only on its own x.
//
//   function   largest error, in units of the result's last place
//   e^x        1.3, where the result is a normal number
//   ln x       0.9, for normal x
//   tanh x     4.9
//   sigmoid    3.2 for x > -87: 1 / (1 + e^-x)
void ExpOf(int64_t size, const float* x, float* y);
void LogOf(int64_t size, const float* x, float* y);
void TanhOf(int64_t size, const float* x, float* y);
void SigmoidOf(int64_t size, const float* x, float* y);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_MATH_H_
