#include "lockstep/kernels/nn/local_response.h"

#include <algorithm>

#include "lockstep/kernels/vectors/scratch.h"
#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/local_response.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/math-inl.h"
#include "lockstep/kernels/vectors/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Returns memory for a row with `radius` zeros on either side. The zeros are already written.
float* PaddedRow(int64_t columns, int64_t radius) {
  thread_local Scratch scratch;
  float* const row = scratch.Get(columns + 2 * radius);
  std::fill_n(row, radius, 0.0f);
  std::fill_n(row + radius + columns, radius, 0.0f);
  return row;
}

// Returns vector v of the sums over each element's neighbors in `row`, a PaddedRow. The zeros do not change the sums.
template <class Strip>
HWY_INLINE FloatVector SumOfNeighbours(const Strip& strip, const float* row, int64_t radius, int v) {
  FloatVector sum = strip.Load(row, v);
  for (int64_t j = 1; j <= 2 * radius; ++j) sum = hn::Add(sum, strip.Load(row + j, v));
  return sum;
}

// s^-beta
HWY_INLINE FloatVector InversePower(FloatVector s, float beta) {
  const Floats d;
  return Exp(d, hn::Mul(hn::Set(d, -beta), Log(d, s)));
}

void Normalize(const LocalResponse& f, int64_t rows, int64_t columns, const float* x, float* scales, float* y) {
  const Floats d;
  float* const squares = PaddedRow(columns, f.radius);
  for (int64_t row = 0; row < rows; ++row, x += columns, scales += columns, y += columns) {
    ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
      for (int v = 0; v < strip.kVectors; ++v) {
        const FloatVector value = strip.Load(x, v);
        strip.Store(hn::Mul(value, value), squares + f.radius, v);
      }
    });
    ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
      for (int v = 0; v < strip.kVectors; ++v) {
        const FloatVector sum = SumOfNeighbours(strip, squares, f.radius, v);
        const FloatVector scale = hn::MulAdd(hn::Set(d, f.alpha), sum, hn::Set(d, f.bias));
        strip.Store(scale, scales, v);
        strip.Store(hn::Mul(strip.Load(x, v), InversePower(scale, f.beta)), y, v);
      }
    });
  }
}

void Gradient(const LocalResponse& f, int64_t rows, int64_t columns, const float* x, const float* scales,
              const float* y, const float* dy, float* dx) {
  const Floats d;
  const FloatVector factor = hn::Set(d, -2.0f * f.alpha * f.beta);
  float* const ratios = PaddedRow(columns, f.radius);
  for (int64_t row = 0; row < rows;
       ++row, x += columns, scales += columns, y += columns, dy += columns, dx += columns) {
    ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
      for (int v = 0; v < strip.kVectors; ++v) {
        const FloatVector product = hn::Mul(strip.Load(dy, v), strip.Load(y, v));
        // Lanes past the end of the row divide by a scale of 0, but are not stored.
        strip.Store(hn::Div(product, strip.Load(scales, v)), ratios + f.radius, v);
      }
    });
    ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
      for (int v = 0; v < strip.kVectors; ++v) {
        const FloatVector sum = SumOfNeighbours(strip, ratios, f.radius, v);
        const FloatVector direct = hn::Mul(strip.Load(dy, v), InversePower(strip.Load(scales, v), f.beta));
        strip.Store(hn::MulAdd(hn::Mul(factor, strip.Load(x, v)), sum, direct), dx, v);
      }
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(Normalize);
HWY_EXPORT(Gradient);

void NormalizeLocalResponse(const LocalResponse& f, int64_t rows, int64_t columns, const float* x, float* scales,
                            float* y) {
  HWY_DYNAMIC_DISPATCH(Normalize)(f, rows, columns, x, scales, y);
}

void LocalResponseGradient(const LocalResponse& f, int64_t rows, int64_t columns, const float* x, const float* scales,
                           const float* y, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(Gradient)(f, rows, columns, x, scales, y, dy, dx);
}

}  // namespace lockstep
#endif  // HWY_ONCE
