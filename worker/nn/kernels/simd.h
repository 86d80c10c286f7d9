#ifndef LOCKSTEP_WORKER_NN_KERNELS_SIMD_H_
#define LOCKSTEP_WORKER_NN_KERNELS_SIMD_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "Eigen/Core"
#include "lockstep/common/base/instruction_set.h"

// Eight floats at a time, for loops whose bits must not depend on where an element stands: the
// last elements of an array are computed by the same instructions as the others, on a padded
// copy. Needs x86-64-v3, for which every object is compiled.
namespace lockstep {

// Arithmetic and comparisons are elementwise; `mask ? a : b` selects (vector extension of GCC and clang).
typedef float F32x8 __attribute__((vector_size(32)));
typedef int32_t I32x8 __attribute__((vector_size(32)));

inline constexpr int64_t kLanes = 8;

inline F32x8 Load8(const float* p) { return _mm256_loadu_ps(p); }
inline void Store8(float* p, F32x8 x) { _mm256_storeu_ps(p, x); }
inline F32x8 Set8(float x) { return _mm256_set1_ps(x); }
// a * b + c, rounded once.
inline F32x8 MultiplyAdd8(F32x8 a, F32x8 b, F32x8 c) { return _mm256_fmadd_ps(a, b, c); }
// A NaN in `x` stays.
inline F32x8 Max8(F32x8 lowest, F32x8 x) { return _mm256_max_ps(lowest, x); }

// Whether a lane is one of the first `count`: all bits, or none.
inline I32x8 FirstLanes(int64_t count) {
  const I32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return lane < static_cast<int32_t>(count);
}
// The first `count` < 8 elements; the others are `fill`. Nothing else is read.
inline F32x8 LoadPart8(const float* p, int64_t count, float fill = 0) {
  const I32x8 mask = FirstLanes(count);
  return mask ? static_cast<F32x8>(_mm256_maskload_ps(p, reinterpret_cast<__m256i>(mask))) : Set8(fill);
}
// Nothing but the first `count` elements is written.
inline void StorePart8(float* p, int64_t count, F32x8 x) {
  _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(FirstLanes(count)), x);
}

// Eigen's vector functions: the same instructions on every processor, unlike the C library's.
namespace simd_internal {
using Array8 = Eigen::Array<float, kLanes, 1>;
template <typename F>
inline F32x8 Apply(F32x8 x, F f) {
  alignas(32) float in[kLanes];
  alignas(32) float out[kLanes];
  _mm256_store_ps(in, x);
  Eigen::Map<Array8, Eigen::Aligned32> result(out);
  result = f(Eigen::Map<const Array8, Eigen::Aligned32>(in));
  return _mm256_load_ps(out);
}
}  // namespace simd_internal

inline F32x8 Exp8(F32x8 x) {
  return simd_internal::Apply(x, [](const auto& a) { return a.exp(); });
}
inline F32x8 Log8(F32x8 x) {
  return simd_internal::Apply(x, [](const auto& a) { return a.log(); });
}
inline F32x8 Tanh8(F32x8 x) {
  return simd_internal::Apply(x, [](const auto& a) { return a.tanh(); });
}
// 1 / (1 + exp(-x))
inline F32x8 Sigmoid8(F32x8 x) { return Set8(1) / (Set8(1) + Exp8(-x)); }

// ((x0+x4)+(x2+x6)) + ((x1+x5)+(x3+x7)).
inline float Sum8(F32x8 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float Largest8(F32x8 x) {
  float largest = x[0];
  for (int i = 1; i < kLanes; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// y[i] = f(x[i]), f from F32x8 to F32x8; y may be x.
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

#endif  // LOCKSTEP_WORKER_NN_KERNELS_SIMD_H_
