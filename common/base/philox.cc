#include "common/base/philox.h"

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
