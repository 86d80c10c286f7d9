// The activations on vectors, for loops that fuse them with other arithmetic. Compiled once for each target.
#if defined(LOCKSTEP_KERNELS_VECTORS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_ACTIVATION_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_ACTIVATION_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_ACTIVATION_INL_H_
#endif

#include "hwy/highway.h"
#include "lockstep/kernels/vectors/activation_type.h"
#include "lockstep/kernels/vectors/math-inl.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// Each functor has Value(x) and Gradient(value, dy), which is dy times the derivative. `value` is x for Gelu, otherwise
// y.
struct IdentityActivation {
  HWY_INLINE FloatVector Value(FloatVector x) const { return x; }
  HWY_INLINE FloatVector Gradient(FloatVector, FloatVector dy) const { return dy; }
};

struct Relu {
  HWY_INLINE FloatVector Value(FloatVector x) const { return AtLeast(Floats(), hn::Zero(Floats()), x); }
  HWY_INLINE FloatVector Gradient(FloatVector y, FloatVector dy) const {
    return hn::IfThenElseZero(hn::Gt(y, hn::Zero(Floats())), dy);
  }
};

struct Relu6 {
  static constexpr float kMost = 6.0f;
  HWY_INLINE FloatVector Value(FloatVector x) const {
    const Floats d;
    return AtMost(d, hn::Set(d, kMost), AtLeast(d, hn::Zero(d), x));
  }
  HWY_INLINE FloatVector Gradient(FloatVector y, FloatVector dy) const {
    const Floats d;
    return hn::IfThenElseZero(hn::And(hn::Gt(y, hn::Zero(d)), hn::Lt(y, hn::Set(d, kMost))), dy);
  }
};

struct LeakyRelu {
  HWY_INLINE FloatVector Value(FloatVector x) const { return Gradient(x, x); }
  HWY_INLINE FloatVector Gradient(FloatVector y, FloatVector dy) const {
    return hn::IfThenElse(hn::Gt(y, hn::Zero(Floats())), dy, hn::Mul(dy, hn::Set(Floats(), slope)));
  }
  float slope;
};

struct TanhActivation {
  HWY_INLINE FloatVector Value(FloatVector x) const { return Tanh(Floats(), x); }
  HWY_INLINE FloatVector Gradient(FloatVector y, FloatVector dy) const {
    return hn::Mul(dy, hn::Sub(hn::Set(Floats(), 1.0f), hn::Mul(y, y)));
  }
};

struct SigmoidActivation {
  HWY_INLINE FloatVector Value(FloatVector x) const { return Sigmoid(Floats(), x); }
  HWY_INLINE FloatVector Gradient(FloatVector y, FloatVector dy) const {
    return hn::Mul(dy, hn::Mul(y, hn::Sub(hn::Set(Floats(), 1.0f), y)));
  }
};

struct Gelu {
  // sqrt(2 / pi)
  static constexpr float kScale = 0.7978845608f;
  static constexpr float kCubic = 0.044715f;

  HWY_INLINE FloatVector Inner(FloatVector x) const {
    const Floats d;
    const FloatVector cube = hn::Mul(hn::Mul(x, x), x);
    return Tanh(d, hn::Mul(hn::Set(d, kScale), hn::Add(x, hn::Mul(hn::Set(d, kCubic), cube))));
  }
  HWY_INLINE FloatVector Value(FloatVector x) const {
    const Floats d;
    return hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), hn::Add(hn::Set(d, 1.0f), Inner(x)));
  }
  HWY_INLINE FloatVector Gradient(FloatVector x, FloatVector dy) const {
    const Floats d;
    const FloatVector half = hn::Set(d, 0.5f);
    const FloatVector one = hn::Set(d, 1.0f);
    const FloatVector t = Inner(x);
    const FloatVector square = hn::Mul(hn::Set(d, 3 * kCubic), hn::Mul(x, x));
    const FloatVector inner_slope = hn::Mul(hn::Set(d, kScale), hn::Add(one, square));
    const FloatVector slope = hn::Sub(one, hn::Mul(t, t));
    FloatVector rest = hn::Mul(hn::Mul(hn::Mul(half, x), slope), inner_slope);
    // If t is 1 or -1, the rest is 0, even if x * x or x is infinite.
    rest = hn::IfThenZeroElse(hn::Eq(slope, hn::Zero(d)), rest);
    return hn::Mul(dy, hn::Add(hn::Mul(half, hn::Add(one, t)), rest));
  }
};

// Calls body(f) with the functor for `f`, so that the loop in `body` is compiled for each functor.
template <typename Body>
HWY_INLINE void WithActivation(const ActivationKernel& f, Body body) {
  switch (f.type) {
    case ActivationType::kIdentity:
      return body(IdentityActivation());
    case ActivationType::kRelu:
      return body(Relu());
    case ActivationType::kLeakyRelu:
      return body(LeakyRelu{f.slope});
    case ActivationType::kTanh:
      return body(TanhActivation());
    case ActivationType::kSigmoid:
      return body(SigmoidActivation());
    case ActivationType::kGelu:
      return body(Gelu());
    case ActivationType::kRelu6:
      return body(Relu6());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_ACTIVATION_INL_H_
