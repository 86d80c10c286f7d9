#ifndef LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_SIMD_H_
#define LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_SIMD_H_

#include "lockstep/worker/nn/kernels/activation_function.h"
#include "lockstep/worker/nn/kernels/simd.h"

// The activations on eight floats, for loops that fuse them with other arithmetic.
namespace lockstep {

// sqrt(2 / pi)
inline constexpr float kGeluScale = 0.7978845608f;
inline constexpr float kGeluCubic = 0.044715f;

// Each has Value(x), and Gradient(value, dy): dy times the derivative; `value` as in ActivationGradient.
struct Identity8 {
  F32x8 Value(F32x8 x) const { return x; }
  F32x8 Gradient(F32x8, F32x8 dy) const { return dy; }
};

struct ReluX8 {
  F32x8 Value(F32x8 x) const { return Max8(Set8(0), x); }
  F32x8 Gradient(F32x8 y, F32x8 dy) const { return y > Set8(0) ? dy : Set8(0); }
};

struct LeakyRelu8 {
  F32x8 Value(F32x8 x) const { return x > Set8(0) ? x : x * Set8(slope); }
  F32x8 Gradient(F32x8 y, F32x8 dy) const { return y > Set8(0) ? dy : dy * Set8(slope); }
  float slope;
};

struct Tanh8Function {
  F32x8 Value(F32x8 x) const { return Tanh8(x); }
  F32x8 Gradient(F32x8 y, F32x8 dy) const { return dy * (Set8(1) - y * y); }
};

struct Sigmoid8Function {
  F32x8 Value(F32x8 x) const { return Sigmoid8(x); }
  F32x8 Gradient(F32x8 y, F32x8 dy) const { return dy * (y * (Set8(1) - y)); }
};

struct Gelu8 {
  static F32x8 Inner(F32x8 x) { return Tanh8(Set8(kGeluScale) * (x + Set8(kGeluCubic) * (x * x * x))); }
  F32x8 Value(F32x8 x) const { return Set8(0.5f) * x * (Set8(1) + Inner(x)); }
  F32x8 Gradient(F32x8 x, F32x8 dy) const {
    const F32x8 t = Inner(x);
    const F32x8 inner_slope = Set8(kGeluScale) * (Set8(1) + Set8(3 * kGeluCubic) * (x * x));
    return dy * (Set8(0.5f) * (Set8(1) + t) + Set8(0.5f) * x * (Set8(1) - t * t) * inner_slope);
  }
};

// Calls body(f) with the functor of `f`, so that the loop in `body` is compiled for each.
template <typename Body>
inline void WithActivation(const ActivationFunction& f, Body body) {
  switch (f.kind) {
    case config::v1::RELU:
      return body(ReluX8());
    case config::v1::LEAKY_RELU:
      return body(LeakyRelu8{f.slope});
    case config::v1::TANH:
      return body(Tanh8Function());
    case config::v1::SIGMOID:
      return body(Sigmoid8Function());
    case config::v1::GELU:
      return body(Gelu8());
    default:
      return body(Identity8());
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_SIMD_H_
