#include "lockstep/common/base/philox.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

// splitmix64's finalizer.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Eight 32-bit numbers. The products of the even lanes, 64 bits each, and of the odd ones.
struct Products {
  __m256i even;
  __m256i odd;
};
Products Multiply(__m256i x, uint32_t multiplier) {
  const __m256i m = _mm256_set1_epi64x(multiplier);
  return {_mm256_mul_epu32(x, m), _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m)};
}
__m256i LowHalves(const Products& p) { return _mm256_blend_epi32(p.even, _mm256_slli_epi64(p.odd, 32), 0xAA); }
__m256i HighHalves(const Products& p) { return _mm256_blend_epi32(_mm256_srli_epi64(p.even, 32), p.odd, 0xAA); }

// Lane i of c[j] becomes out[4 * i + j].
void StoreTransposed(const __m256i c[4], uint32_t* out) {
  const __m256i ab_low = _mm256_unpacklo_epi32(c[0], c[1]);
  const __m256i ab_high = _mm256_unpackhi_epi32(c[0], c[1]);
  const __m256i cd_low = _mm256_unpacklo_epi32(c[2], c[3]);
  const __m256i cd_high = _mm256_unpackhi_epi32(c[2], c[3]);
  // Each holds block i in its low half and block i + 4 in the high one.
  const __m256i blocks[4] = {_mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low),
                             _mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high)};
  for (int i = 0; i < 4; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 4 * i), _mm256_castsi256_si128(blocks[i]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 4 * i + 16), _mm256_extracti128_si256(blocks[i], 1));
  }
}

// Calls f(element index, block, first lane) for every block that `size` elements need, `per_block` each.
template <typename F>
void ForEachBlock(const Philox& philox, size_t size, size_t per_block, F f) {
  uint64_t index = 0;
  for (size_t i = 0; i < size; i += per_block) f(i, philox.At(index++));
}

}  // namespace

Philox Philox::ForSlot(uint64_t seed, absl::string_view use, int64_t step, int64_t slot) {
  const uint64_t place = Mix(static_cast<uint64_t>(step) * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(slot) + 1);
  return Philox(seed, StableHash(use, place));
}

Philox::Block Philox::At(uint64_t index) const {
  Block c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(stream_),
             static_cast<uint32_t>(stream_ >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key_);
  uint32_t k1 = static_cast<uint32_t>(key_ >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiplier0) * c[0];
    const uint64_t p1 = static_cast<uint64_t>(kMultiplier1) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

void Philox::FillBits(uint64_t first_block, absl::Span<uint32_t> out) const {
  constexpr size_t kTogether = 32;
  size_t i = 0;
  // The lanes of one group must not carry into the counter's upper half.
  for (; i + kTogether <= out.size() && static_cast<uint32_t>(first_block) <= UINT32_MAX - 7;
       i += kTogether, first_block += 8) {
    __m256i c[4] = {_mm256_add_epi32(_mm256_set1_epi32(static_cast<int32_t>(first_block)),
                                     _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
                    _mm256_set1_epi32(static_cast<int32_t>(first_block >> 32)),
                    _mm256_set1_epi32(static_cast<int32_t>(stream_)),
                    _mm256_set1_epi32(static_cast<int32_t>(stream_ >> 32))};
    uint32_t k0 = static_cast<uint32_t>(key_);
    uint32_t k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < kRounds; ++round) {
      const Products p0 = Multiply(c[0], kMultiplier0);
      const Products p1 = Multiply(c[2], kMultiplier1);
      c[0] = _mm256_xor_si256(_mm256_xor_si256(HighHalves(p1), c[1]), _mm256_set1_epi32(static_cast<int32_t>(k0)));
      c[1] = LowHalves(p1);
      c[2] = _mm256_xor_si256(_mm256_xor_si256(HighHalves(p0), c[3]), _mm256_set1_epi32(static_cast<int32_t>(k1)));
      c[3] = LowHalves(p0);
      k0 += kWeyl0;
      k1 += kWeyl1;
    }
    StoreTransposed(c, out.data() + i);
  }
  for (; i < out.size(); i += 4) {
    const Block block = At(first_block++);
    std::copy_n(block.begin(), std::min<size_t>(4, out.size() - i), out.begin() + i);
  }
}

void Philox::FillUniform(absl::Span<float> out) const {
  ForEachBlock(*this, out.size(), 4, [&](size_t i, const Block& block) {
    for (size_t lane = 0; lane < 4 && i + lane < out.size(); ++lane) out[i + lane] = ToUniform(block[lane]);
  });
}

void Philox::FillNormal(absl::Span<float> out) const {
  // Two normals from two 32-bit uniforms; u in (0, 1] keeps the logarithm finite.
  ForEachBlock(*this, out.size(), 4, [&](size_t i, const Block& block) {
    for (size_t pair = 0; pair < 4; pair += 2) {
      const double u = (static_cast<double>(block[pair]) + 1.0) * 0x1p-32;
      const double angle = 2.0 * M_PI * static_cast<double>(block[pair + 1]) * 0x1p-32;
      const double radius = std::sqrt(-2.0 * std::log(u));
      if (i + pair < out.size()) out[i + pair] = static_cast<float>(radius * std::cos(angle));
      if (i + pair + 1 < out.size()) out[i + pair + 1] = static_cast<float>(radius * std::sin(angle));
    }
  });
}

uint64_t StableHash(absl::string_view text, uint64_t seed) {
  uint64_t hash = 0xCBF29CE484222325ull ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ull;
  return Mix(hash);
}

}  // namespace lockstep
