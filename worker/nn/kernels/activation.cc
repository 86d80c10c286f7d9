#include "lockstep/worker/nn/kernels/activation.h"

#include <algorithm>

#include "lockstep/worker/nn/kernels/activation_simd.h"

namespace lockstep {

void Activate(const ActivationFunction& f, int64_t size, const float* x, float* y) {
  if (f.kind == config::v1::NONE && x == y) return;
  WithActivation(f, [&](auto function) { Transform(size, x, y, [&](F32x8 v) { return function.Value(v); }); });
}

void AddBiasAndActivate(const ActivationFunction& f, int64_t size, const float* x, const float* bias, float* y) {
  WithActivation(
      f, [&](auto function) { Transform(size, x, bias, y, [&](F32x8 v, F32x8 b) { return function.Value(v + b); }); });
}

void ActivationGradient(const ActivationFunction& f, int64_t size, const float* value, const float* dy, float* dx) {
  if (f.kind == config::v1::NONE && dx == dy) return;
  WithActivation(f, [&](auto function) {
    Transform(size, value, dy, dx, [&](F32x8 v, F32x8 g) { return function.Gradient(v, g); });
  });
}

}  // namespace lockstep
