#include "lockstep/kernels/nn/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/layer_norm.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/eight-inl.h"
#include "lockstep/kernels/vectors/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Number of vectors of eight that are summed in parallel.
constexpr int kEights = 4;

// Returns the sum over a row of f(column, count), which returns the terms of eight columns. Lanes from `count` on must
// be zero.
template <class F>
HWY_INLINE float SumRow(int64_t columns, F f) {
  Eight sums[kEights];
#pragma GCC unroll 4
  for (int k = 0; k < kEights; ++k) sums[k] = SetEight(0);
  int64_t column = 0;
  for (; column + 8 * kEights <= columns; column += 8 * kEights) {
#pragma GCC unroll 4
    for (int k = 0; k < kEights; ++k) sums[k] = AddEight(sums[k], f(column + 8 * k, 8));
  }
  for (; column < columns; column += 8) {
    sums[0] = AddEight(sums[0], f(column, std::min<int64_t>(8, columns - column)));
  }
  return SumEight(AddEight(AddEight(sums[0], sums[1]), AddEight(sums[2], sums[3])));
}

HWY_INLINE Eight MultiplyEight(const Eight& a, const Eight& b) {
  return MapEight([](auto x, auto y) HWY_ATTR { return hn::Mul(x, y); }, a, b);
}
HWY_INLINE Eight SubtractEight(const Eight& a, const Eight& b) {
  return MapEight([](auto x, auto y) HWY_ATTR { return hn::Sub(x, y); }, a, b);
}

HWY_INLINE float MeanOfRow(int64_t columns, const float* x) {
  return SumRow(columns, [&](int64_t c, int64_t count) HWY_ATTR { return LoadEight(x + c, count, 0); }) /
         static_cast<float>(columns);
}

HWY_INLINE float VarianceOfRow(int64_t columns, float mean, const float* x) {
  const Eight means = SetEight(mean);
  return SumRow(columns,
                [&](int64_t c, int64_t count) HWY_ATTR {
                  Eight distance = SubtractEight(LoadEight(x + c, count, 0), means);
                  if (count < 8) distance = KeepFirst(distance, count);
                  return MultiplyEight(distance, distance);
                }) /
         static_cast<float>(columns);
}

void RowsOnTarget(int64_t rows, int64_t columns, float epsilon, const float* gamma, const float* beta, const float* x,
                  float* means, float* inverses, float* y) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    means[row] = MeanOfRow(columns, x);
    inverses[row] = 1.0f / std::sqrt(VarianceOfRow(columns, means[row], x) + epsilon);
    const FloatVector mean = hn::Set(Floats(), means[row]);
    const FloatVector inverse = hn::Set(Floats(), inverses[row]);
    ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
#pragma GCC unroll 4
      for (int v = 0; v < strip.kVectors; ++v) {
        const FloatVector normal = hn::Mul(hn::Sub(strip.Load(x, v), mean), inverse);
        strip.Store(hn::MulAdd(normal, strip.Load(gamma, v), strip.Load(beta, v)), y, v);
      }
    });
  }
}

void RowsGradientOnTarget(int64_t rows, int64_t columns, const float* gamma, const RowMoments& moments, const float* x,
                          const float* dy, float* dx) {
  const float size = static_cast<float>(columns);
  for (int64_t row = 0; row < rows; ++row, x += columns, dy += columns, dx += columns) {
    const auto g = [&](int64_t c, int64_t count)
                       HWY_ATTR { return MultiplyEight(LoadEight(dy + c, count, 0), LoadEight(gamma + c, count, 0)); };
    const Eight row_mean = SetEight(moments.means[row]);
    const Eight row_inverse = SetEight(moments.inverses[row]);
    const float g_mean = SumRow(columns, g) / size;
    const float product_mean = SumRow(columns,
                                      [&](int64_t c, int64_t count) HWY_ATTR {
                                        Eight distance = SubtractEight(LoadEight(x + c, count, 0), row_mean);
                                        // The lanes past the end hold -mean, and mean * inverse may be infinite.
                                        if (count < 8) distance = KeepFirst(distance, count);
                                        return MultiplyEight(g(c, count), MultiplyEight(distance, row_inverse));
                                      }) /
                               size;
    const FloatVector mean = hn::Set(Floats(), moments.means[row]);
    const FloatVector inverse = hn::Set(Floats(), moments.inverses[row]);
    const FloatVector offset = hn::Set(Floats(), g_mean);
    const FloatVector slope = hn::Set(Floats(), product_mean);
    ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
#pragma GCC unroll 4
      for (int v = 0; v < strip.kVectors; ++v) {
        const FloatVector normal = hn::Mul(hn::Sub(strip.Load(x, v), mean), inverse);
        const FloatVector gradient = hn::Mul(strip.Load(dy, v), strip.Load(gamma, v));
        strip.Store(hn::Mul(inverse, hn::Sub(hn::Sub(gradient, offset), hn::Mul(normal, slope))), dx, v);
      }
    });
  }
}

void SumsOnTarget(int64_t rows, int64_t columns, const RowMoments& moments, const float* x, const float* dy,
                  float* products, float* sums) {
  ForEachStrip(columns, [&](const auto& strip) HWY_ATTR {
    constexpr int kVectors = std::decay_t<decltype(strip)>::kVectors;
    StripVectors<kVectors> product = ZeroStrip<kVectors>();
    StripVectors<kVectors> sum = ZeroStrip<kVectors>();
    for (int64_t row = 0; row < rows; ++row) {
      const FloatVector mean = hn::Set(Floats(), moments.means[row]);
      const FloatVector inverse = hn::Set(Floats(), moments.inverses[row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const FloatVector gradient = strip.Load(dy + row * columns, v);
        const FloatVector normal = hn::Mul(hn::Sub(strip.Load(x + row * columns, v), mean), inverse);
        product.vectors[v] = hn::MulAdd(gradient, normal, product[v]);
        sum.vectors[v] = hn::Add(sum[v], gradient);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      strip.Store(product[v], products, v);
      strip.Store(sum[v], sums, v);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(RowsOnTarget);
HWY_EXPORT(RowsGradientOnTarget);
HWY_EXPORT(SumsOnTarget);

void NormalizeRows(int64_t rows, int64_t columns, float epsilon, const float* gamma, const float* beta, const float* x,
                   float* means, float* inverses, float* y) {
  HWY_DYNAMIC_DISPATCH(RowsOnTarget)(rows, columns, epsilon, gamma, beta, x, means, inverses, y);
}

void NormalizeRowsGradient(int64_t rows, int64_t columns, const float* gamma, const RowMoments& moments, const float* x,
                           const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(RowsGradientOnTarget)(rows, columns, gamma, moments, x, dy, dx);
}

void SumRowNormGradients(int64_t rows, int64_t columns, const RowMoments& moments, const float* x, const float* dy,
                         float* products, float* sums) {
  HWY_DYNAMIC_DISPATCH(SumsOnTarget)(rows, columns, moments, x, dy, products, sums);
}

}  // namespace lockstep
#endif  // HWY_ONCE
