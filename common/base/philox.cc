#include "lockstep/common/base/philox.h"

#include "lockstep/kernels/normal_numbers.h"
#include "lockstep/kernels/philox_block.h"
#include "lockstep/kernels/philox_blocks.h"

namespace lockstep {
namespace {

// The finalizer of splitmix64.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Calls f(element index, block) for every block that `size` elements need. Each block provides `per_block` elements.
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

Philox::Block Philox::At(uint64_t index) const { return PhiloxBlock(key_, stream_, index); }

void Philox::FillBits(uint64_t first_block, absl::Span<uint32_t> out) const {
  FillPhiloxBlocks(key_, stream_, first_block, static_cast<int64_t>(out.size()), out.data());
}

void Philox::FillUniform(absl::Span<float> out) const {
  ForEachBlock(*this, out.size(), 4, [&](size_t i, const Block& block) {
    for (size_t lane = 0; lane < 4 && i + lane < out.size(); ++lane) out[i + lane] = ToUniform(block[lane]);
  });
}

void Philox::FillNormal(absl::Span<float> out) const {
  constexpr size_t kNumbers = 2 * kNormalPairs;
  uint32_t words[kNumbers];
  double first[kNormalPairs], second[kNormalPairs];
  for (size_t begin = 0; begin < out.size(); begin += kNumbers) {
    FillBits(begin / 4, words);
    NormalPairs(words, first, second);
    const absl::Span<float> part = out.subspan(begin, kNumbers);
    for (size_t i = 0; i < part.size(); ++i) part[i] = static_cast<float>(i % 2 == 0 ? first[i / 2] : second[i / 2]);
  }
}

uint64_t StableHash(absl::string_view text, uint64_t seed) {
  uint64_t hash = 0xCBF29CE484222325ull ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ull;
  return Mix(hash);
}

}  // namespace lockstep
