#include "worker/nn/activation.h"

#include <algorithm>

#include "worker/nn/activation_simd.h"

namespace lockstep {

void Activate(const ActivationFunction& f, int64_t size, const float* x, float* y) {
  if (f.kind == NONE && x == y) return;
  WithActivation(f, [&](auto function) { Transform(size, x, y, [&](Float8 v) { return function.Value(v); }); });
}

void AddBiasAndActivate(const ActivationFunction& f, int64_t size, const float* x, const float* bias, float* y) {
  WithActivation(f, [&](auto function) {
    Transform(size, x, bias, y, [&](Float8 v, Float8 b) { return function.Value(v + b); });
  });
}

void ActivationGradient(const ActivationFunction& f, int64_t size, const float* value, const float* dy, float* dx) {
  if (f.kind == NONE && dx == dy) return;
  WithActivation(f, [&](auto function) {
    Transform(size, value, dy, dx, [&](Float8 v, Float8 g) { return function.Gradient(v, g); });
  });
}

}  // namespace lockstep
