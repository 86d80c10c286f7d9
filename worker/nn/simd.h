#ifndef LOCKSTEP_WORKER_NN_SIMD_H_
#define LOCKSTEP_WORKER_NN_SIMD_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "Eigen/Core"

// Eight floats at a time, for loops whose bits must not depend on where an element stands: the
// last elements of an array are computed by the same instructions as the others, on a padded
// copy. Needs x86-64-v3, which .bazelrc sets for every object.
namespace lockstep {

// Arithmetic and comparisons are elementwise; `mask ? a : b` selects (vector extension of GCC and clang).
typedef float Float8 __attribute__((vector_size(32)));
typedef int32_t Int8 __attribute__((vector_size(32)));

inline constexpr int64_t kLanes = 8;

inline Float8 Load8(const float* p) { return _mm256_loadu_ps(p); }
inline void Store8(float* p, Float8 x) { _mm256_storeu_ps(p, x); }
inline Float8 Set8(float x) { return _mm256_set1_ps(x); }
// a * b + c, rounded once.
inline Float8 MultiplyAdd8(Float8 a, Float8 b, Float8 c) { return _mm256_fmadd_ps(a, b, c); }
// A NaN in `x` stays.
inline Float8 Max8(Float8 lowest, Float8 x) { return _mm256_max_ps(lowest, x); }

// The first `count` < 8 elements; the others are `fill`.
inline Float8 LoadPart8(const float* p, int64_t count, float fill = 0) {
  alignas(32) float padded[kLanes] = {fill, fill, fill, fill, fill, fill, fill, fill};
  for (int64_t i = 0; i < count; ++i) padded[i] = p[i];
  return _mm256_load_ps(padded);
}
inline void StorePart8(float* p, int64_t count, Float8 x) {
  alignas(32) float padded[kLanes];
  _mm256_store_ps(padded, x);
  for (int64_t i = 0; i < count; ++i) p[i] = padded[i];
}

// Eigen's vector functions: the same instructions on every processor, unlike the C library's.
namespace simd_internal {
using Array8 = Eigen::Array<float, kLanes, 1>;
template <typename F>
inline Float8 Apply(Float8 x, F f) {
  alignas(32) float in[kLanes];
  alignas(32) float out[kLanes];
  _mm256_store_ps(in, x);
  Eigen::Map<Array8, Eigen::Aligned32> result(out);
  result = f(Eigen::Map<const Array8, Eigen::Aligned32>(in));
  return _mm256_load_ps(out);
}
}  // namespace simd_internal

inline Float8 Exp8(Float8 x) {
  return simd_internal::Apply(x, [](const auto& a) { return a.exp(); });
}
inline Float8 Log8(Float8 x) {
  return simd_internal::Apply(x, [](const auto& a) { return a.log(); });
}
inline Float8 Tanh8(Float8 x) {
  return simd_internal::Apply(x, [](const auto& a) { return a.tanh(); });
}
// 1 / (1 + exp(-x))
inline Float8 Sigmoid8(Float8 x) { return Set8(1) / (Set8(1) + Exp8(-x)); }

// ((x0+x4)+(x2+x6)) + ((x1+x5)+(x3+x7)).
inline float Sum8(Float8 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float Largest8(Float8 x) {
  float largest = x[0];
  for (int i = 1; i < kLanes; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// y[i] = f(x[i]), f from Float8 to Float8; y may be x.
template <typename F>
inline void Transform(int64_t size, const float* x, float* y, F f) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) Store8(y + i, f(Load8(x + i)));
  if (i < size) StorePart8(y + i, size - i, f(LoadPart8(x + i, size - i)));
}

// z[i] = f(x[i], y[i]); z may be x or y.
template <typename F>
inline void Transform(int64_t size, const float* x, const float* y, float* z, F f) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) Store8(z + i, f(Load8(x + i), Load8(y + i)));
  if (i < size) StorePart8(z + i, size - i, f(LoadPart8(x + i, size - i), LoadPart8(y + i, size - i)));
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_SIMD_H_
