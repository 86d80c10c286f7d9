#include "lockstep/kernels/nn/activation.h"

#include <algorithm>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/activation.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/activation-inl.h"
#include "lockstep/kernels/vectors/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

void Values(const ActivationKernel& f, int64_t size, const float* x, float* y) {
  WithActivation(f, [&](auto function)
                        HWY_ATTR { Transform(size, x, y, [&](FloatVector v) HWY_ATTR { return function.Value(v); }); });
}

template <class Function>
HWY_INLINE void BiasAndValues(Function function, int64_t columns, const float* bias, float* sum, float* y) {
  const Floats d;
  int64_t c = 0;
  for (; c + kFloatLanes <= columns; c += kFloatLanes) {
    const FloatVector x = hn::Add(hn::LoadU(d, sum + c), hn::LoadU(d, bias + c));
    hn::StoreU(x, d, sum + c);
    hn::StoreU(function.Value(x), d, y + c);
  }
  if (c == columns) return;
  const int64_t count = columns - c;
  const FloatVector x = hn::Add(LoadPart(d, sum + c, count), LoadPart(d, bias + c, count));
  StorePart(x, d, sum + c, count);
  StorePart(function.Value(x), d, y + c, count);
}

void BiasAndValuesOfRows(const ActivationKernel& f, int64_t rows, int64_t columns, int64_t stride, const float* bias,
                         float* sum, float* y) {
  WithActivation(f, [&](auto function) HWY_ATTR {
    for (int64_t row = 0; row < rows; ++row) {
      float* const from = sum + row * stride;
      float* const to = y + row * stride;
      if (bias == nullptr) {
        Transform(columns, from, to, [&](FloatVector x) HWY_ATTR { return function.Value(x); });
      } else if (sum == y) {
        Transform(columns, from, bias, to,
                  [&](FloatVector x, FloatVector b) HWY_ATTR { return function.Value(hn::Add(x, b)); });
      } else {
        BiasAndValues(function, columns, bias, from, to);
      }
    }
  });
}

void Gradients(const ActivationKernel& f, int64_t size, const float* value, const float* dy, float* dx) {
  WithActivation(f, [&](auto function) HWY_ATTR {
    Transform(size, value, dy, dx, [&](FloatVector v, FloatVector g) HWY_ATTR { return function.Gradient(v, g); });
  });
}

// Writes the gradients of `rows` rows to dx, unless it is null, and adds them to `sums`. If `first` is true, the
// initial contents of `sums` are ignored.
template <class Function, class Strip>
HWY_INLINE void GradientsOfStrip(Function function, const Strip& strip, bool first, int64_t rows, int64_t columns,
                                 const float* value, const float* dy, float* dx, float* sums) {
  auto sum = first ? ZeroStrip<Strip::kVectors>() : LoadStrip(strip, sums);
  for (int64_t at = 0; at < rows * columns; at += columns) {
#pragma GCC unroll 4
    for (int v = 0; v < Strip::kVectors; ++v) {
      const FloatVector gradient = function.Gradient(strip.Load(value + at, v), strip.Load(dy + at, v));
      if (dx != nullptr) strip.Store(gradient, dx + at, v);
      sum.vectors[v] = hn::Add(sum.vectors[v], gradient);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Strip::kVectors; ++v) strip.Store(sum[v], sums, v);
}

void GradientsAndSums(const ActivationKernel& f, int64_t rows, int64_t columns, const float* value, const float* dy,
                      float* dx, float* sums) {
  // The sums of narrow rows stay in registers. Wide rows are added one by one so that memory is read in order; strips
  // that span many rows take three times as long on an AMD EPYC.
  const int64_t group = columns <= 4 * kFloatLanes ? rows : 1;
  WithActivation(f, [&](auto function) HWY_ATTR {
    for (int64_t row = 0; row < rows; row += group) {
      const int64_t count = std::min(group, rows - row);
      const int64_t at = row * columns;
      ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
        GradientsOfStrip(function, strip, row == 0, count, columns, value + at, dy + at,
                         dx == nullptr ? nullptr : dx + at, sums);
      });
    }
  });
}

void Sums(int64_t rows, int64_t columns, const float* x, float* sums) {
  ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
    auto sum = LoadStrip(strip, x);
    for (int64_t row = 1; row < rows; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < strip.kVectors; ++v) sum.vectors[v] = hn::Add(sum[v], strip.Load(x + row * columns, v));
    }
#pragma GCC unroll 4
    for (int v = 0; v < strip.kVectors; ++v) strip.Store(sum[v], sums, v);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(Values);
HWY_EXPORT(BiasAndValuesOfRows);
HWY_EXPORT(Gradients);
HWY_EXPORT(GradientsAndSums);
HWY_EXPORT(Sums);

void ApplyActivation(const ActivationKernel& f, int64_t size, const float* x, float* y) {
  if (f.type == ActivationType::kIdentity && x == y) return;
  HWY_DYNAMIC_DISPATCH(Values)(f, size, x, y);
}

void AddBiasAndActivateRows(const ActivationKernel& f, int64_t rows, int64_t columns, int64_t stride, const float* bias,
                            float* sum, float* y) {
  if (f.type == ActivationType::kIdentity && bias == nullptr && sum == y) return;
  HWY_DYNAMIC_DISPATCH(BiasAndValuesOfRows)(f, rows, columns, stride, bias, sum, y);
}

void ApplyActivationGradient(const ActivationKernel& f, int64_t size, const float* value, const float* dy, float* dx) {
  if (f.type == ActivationType::kIdentity && dx == dy) return;
  HWY_DYNAMIC_DISPATCH(Gradients)(f, size, value, dy, dx);
}

void ActivationGradientAndSums(const ActivationKernel& f, int64_t rows, int64_t columns, const float* value,
                               const float* dy, float* dx, float* sums) {
  if (sums == nullptr) return ApplyActivationGradient(f, rows * columns, value, dy, dx);
  if (f.type == ActivationType::kIdentity && dx == dy) dx = nullptr;
  HWY_DYNAMIC_DISPATCH(GradientsAndSums)(f, rows, columns, value, dy, dx, sums);
}

void SumColumns(int64_t rows, int64_t columns, const float* x, float* sums) {
  HWY_DYNAMIC_DISPATCH(Sums)(rows, columns, x, sums);
}

}  // namespace lockstep
#endif  // HWY_ONCE
