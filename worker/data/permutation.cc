#include "lockstep/worker/data/permutation.h"

#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

// The round function: the finalizer of splitmix64.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

uint64_t Mask(int bits) { return (uint64_t{1} << bits) - 1; }

}  // namespace

Permutation::Permutation(int64_t n, uint64_t seed, int64_t epoch) : n_(n) {
  int bits = 0;
  while ((uint64_t{1} << bits) < static_cast<uint64_t>(n)) ++bits;
  upper_bits_ = bits / 2;
  lower_bits_ = bits - upper_bits_;
  const Philox philox(seed, StableHash("epoch permutation", static_cast<uint64_t>(epoch)));
  for (int round = 0; round < kRounds; ++round) {
    const Philox::Block block = philox.At(round);
    keys_[round] = static_cast<uint64_t>(block[1]) << 32 | block[0];
  }
}

int64_t Permutation::At(int64_t place) const {
  uint64_t x = static_cast<uint64_t>(place);
  do {
    x = Encrypt(x);
  } while (x >= static_cast<uint64_t>(n_));
  return static_cast<int64_t>(x);
}

// Rounds alternate between changing the lower and the upper half, so that each half keeps its width.
uint64_t Permutation::Encrypt(uint64_t x) const {
  uint64_t upper = x >> lower_bits_;
  uint64_t lower = x & Mask(lower_bits_);
  for (int round = 0; round < kRounds; round += 2) {
    lower ^= Mix(upper ^ keys_[round]) & Mask(lower_bits_);
    upper ^= Mix(lower ^ keys_[round + 1]) & Mask(upper_bits_);
  }
  return upper << lower_bits_ | lower;
}

}  // namespace lockstep
