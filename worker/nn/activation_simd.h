#ifndef LOCKSTEP_WORKER_NN_ACTIVATION_SIMD_H_
#define LOCKSTEP_WORKER_NN_ACTIVATION_SIMD_H_

#include "worker/nn/activation_function.h"
#include "worker/nn/simd.h"

// The activations on eight floats, for loops that fuse them with other arithmetic.
namespace lockstep {

// sqrt(2 / pi)
inline constexpr float kGeluScale = 0.7978845608f;
inline constexpr float kGeluCubic = 0.044715f;

// Each has Value(x), and Gradient(value, dy): dy times the derivative; `value` as in ActivationGradient.
struct Identity8 {
  Float8 Value(Float8 x) const { return x; }
  Float8 Gradient(Float8, Float8 dy) const { return dy; }
};

struct Relu8 {
  Float8 Value(Float8 x) const { return Max8(Set8(0), x); }
  Float8 Gradient(Float8 y, Float8 dy) const { return y > Set8(0) ? dy : Set8(0); }
};

struct LeakyRelu8 {
  Float8 Value(Float8 x) const { return x > Set8(0) ? x : x * Set8(slope); }
  Float8 Gradient(Float8 y, Float8 dy) const { return y > Set8(0) ? dy : dy * Set8(slope); }
  float slope;
};

struct Tanh8Function {
  Float8 Value(Float8 x) const { return Tanh8(x); }
  Float8 Gradient(Float8 y, Float8 dy) const { return dy * (Set8(1) - y * y); }
};

struct Sigmoid8Function {
  Float8 Value(Float8 x) const { return Sigmoid8(x); }
  Float8 Gradient(Float8 y, Float8 dy) const { return dy * (y * (Set8(1) - y)); }
};

struct Gelu8 {
  static Float8 Inner(Float8 x) { return Tanh8(Set8(kGeluScale) * (x + Set8(kGeluCubic) * (x * x * x))); }
  Float8 Value(Float8 x) const { return Set8(0.5f) * x * (Set8(1) + Inner(x)); }
  Float8 Gradient(Float8 x, Float8 dy) const {
    const Float8 t = Inner(x);
    const Float8 inner_slope = Set8(kGeluScale) * (Set8(1) + Set8(3 * kGeluCubic) * (x * x));
    return dy * (Set8(0.5f) * (Set8(1) + t) + Set8(0.5f) * x * (Set8(1) - t * t) * inner_slope);
  }
};

// Calls body(f) with the functor of `f`, so that the loop in `body` is compiled for each.
template <typename Body>
inline void WithActivation(const ActivationFunction& f, Body body) {
  switch (f.kind) {
    case RELU:
      return body(Relu8());
    case LEAKY_RELU:
      return body(LeakyRelu8{f.slope});
    case TANH:
      return body(Tanh8Function());
    case SIGMOID:
      return body(Sigmoid8Function());
    case GELU:
      return body(Gelu8());
    default:
      return body(Identity8());
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_ACTIVATION_SIMD_H_
