#include "lockstep/common/tensor/rounding.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

constexpr int64_t kLanes = 8;
constexpr float kLargestHalf = 65504;

// Eight floats from or to eight 16-bit numbers.
struct Bfloat16 {
  static __m128i Encode(__m256 values) {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    const __m256i infinity = _mm256_set1_epi32(0x7f800000);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    rounded = _mm256_srli_epi32(rounded, 16);
    // What was rounded up to infinity goes back to the largest number.
    const __m256i overflown = _mm256_and_si256(
        _mm256_cmpeq_epi32(_mm256_and_si256(rounded, _mm256_set1_epi32(0x7fff)), _mm256_set1_epi32(0x7f80)),
        _mm256_cmpgt_epi32(infinity, magnitude));
    rounded = _mm256_add_epi32(rounded, overflown);
    const __m256i nan = _mm256_cmpgt_epi32(magnitude, infinity);
    rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
  }
  static __m256 Decode(__m128i numbers) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(numbers), 16));
  }
};

struct Half {
  static __m128i Encode(__m256 values) {
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), values);
    const __m256 limit = _mm256_set1_ps(kLargestHalf);
    const __m256 infinity = _mm256_set1_ps(__builtin_inff());
    const __m256 overflown =
        _mm256_and_ps(_mm256_cmp_ps(magnitude, limit, _CMP_GT_OQ), _mm256_cmp_ps(magnitude, infinity, _CMP_LT_OQ));
    const __m256 signed_limit = _mm256_or_ps(limit, _mm256_and_ps(values, _mm256_set1_ps(-0.0f)));
    values = _mm256_blendv_ps(values, signed_limit, overflown);
    values = _mm256_blendv_ps(values, _mm256_set1_ps(__builtin_nanf("")), _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    return _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
  }
  static __m256 Decode(__m128i numbers) { return _mm256_cvtph_ps(numbers); }
};

// Calls f(at, lanes) for runs of eight lanes; the last may have less.
template <typename F>
void ForEachRun(int64_t n, F f) {
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) f(at, kLanes);
  if (at < n) f(at, n - at);
}

__m256 Load(const float* values, int64_t lanes) {
  if (lanes == kLanes) return _mm256_loadu_ps(values);
  float padded[kLanes] = {};
  std::memcpy(padded, values, static_cast<size_t>(lanes) * sizeof(float));
  return _mm256_loadu_ps(padded);
}

void Store(__m256 run, int64_t lanes, float* values) {
  if (lanes == kLanes) {
    _mm256_storeu_ps(values, run);
    return;
  }
  float padded[kLanes];
  _mm256_storeu_ps(padded, run);
  std::memcpy(values, padded, static_cast<size_t>(lanes) * sizeof(float));
}

__m128i Load16(const char* bytes, int64_t lanes) {
  if (lanes == kLanes) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  uint16_t padded[kLanes] = {};
  std::memcpy(padded, bytes, static_cast<size_t>(lanes) * sizeof(uint16_t));
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(padded));
}

void Store16(__m128i run, int64_t lanes, uint16_t* out) {
  uint16_t numbers[kLanes];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(numbers), run);
  std::memcpy(out, numbers, static_cast<size_t>(lanes) * sizeof(uint16_t));
}

template <typename Type>
void RoundAll(int64_t n, float* values) {
  ForEachRun(n, [values](int64_t at, int64_t lanes) {
    Store(Type::Decode(Type::Encode(Load(values + at, lanes))), lanes, values + at);
  });
}

template <typename Type>
void EncodeAll(int64_t n, const float* values, uint16_t* out) {
  ForEachRun(n, [=](int64_t at, int64_t lanes) { Store16(Type::Encode(Load(values + at, lanes)), lanes, out + at); });
}

template <typename Type>
void DecodeAll(int64_t n, const char* bytes, float* out) {
  ForEachRun(n, [=](int64_t at, int64_t lanes) {
    Store(Type::Decode(Load16(bytes + at * sizeof(uint16_t), lanes)), lanes, out + at);
  });
}

template <typename Type>
void DecodeAndAddAll(int64_t n, const char* bytes, float* out) {
  ForEachRun(n, [=](int64_t at, int64_t lanes) {
    const __m256 run = Type::Decode(Load16(bytes + at * sizeof(uint16_t), lanes));
    Store(_mm256_add_ps(Load(out + at, lanes), run), lanes, out + at);
  });
}

}  // namespace

bool IsFloatType(v1::DataType type) { return type == v1::DT_FLOAT || type == v1::DT_BFLOAT16 || type == v1::DT_HALF; }

void RoundTo(v1::DataType type, int64_t n, float* values) {
  if (type == v1::DT_BFLOAT16) RoundAll<Bfloat16>(n, values);
  if (type == v1::DT_HALF) RoundAll<Half>(n, values);
}

void Encode16(v1::DataType type, int64_t n, const float* values, uint16_t* out) {
  type == v1::DT_BFLOAT16 ? EncodeAll<Bfloat16>(n, values, out) : EncodeAll<Half>(n, values, out);
}

void Decode16(v1::DataType type, int64_t n, const char* bytes, float* out) {
  type == v1::DT_BFLOAT16 ? DecodeAll<Bfloat16>(n, bytes, out) : DecodeAll<Half>(n, bytes, out);
}

void DecodeAndAdd16(v1::DataType type, int64_t n, const char* bytes, float* out) {
  type == v1::DT_BFLOAT16 ? DecodeAndAddAll<Bfloat16>(n, bytes, out) : DecodeAndAddAll<Half>(n, bytes, out);
}

}  // namespace lockstep
