#ifndef LOCKSTEP_COMMON_BASE_PHILOX_H_
#define LOCKSTEP_COMMON_BASE_PHILOX_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep {

// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011), a counter-based generator.
// Block i of a stream is a pure function of (key, stream, i), so any number can be computed without the preceding ones,
// on any machine, in any order. Copyable; allocates no memory. Thread-compatible.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  // `key` is usually the run's seed; `stream` distinguishes the purposes for which it is used.
  Philox(uint64_t key, uint64_t stream) : key_(key), stream_(stream) {}

  // Returns the generator for a (step, slot) and a named use, such as the dropout of one layer.
  static Philox ForSlot(uint64_t seed, absl::string_view use, int64_t step, int64_t slot);

  // Returns four independent uniform 32-bit numbers.
  Block At(uint64_t index) const;

  // Writes the numbers of blocks first_block, first_block + 1, ... in order. Computes several blocks at a time, which
  // is about four times as fast as At(). Intended for long masks.
  void FillBits(uint64_t first_block, absl::Span<uint32_t> out) const;

  // Fills `out`, starting with block 0, with numbers that are uniform in [0, 1) and have 24 bits.
  void FillUniform(absl::Span<float> out) const;
  // Fills `out`, starting with block 0, with standard normal numbers: the pairs from normal_numbers.h, rounded to
  // float.
  void FillNormal(absl::Span<float> out) const;

  // Converts 32 random bits to a number in [0, 1).
  static float ToUniform(uint32_t bits) { return static_cast<float>(bits >> 8) * (1.0f / 16777216.0f); }

 private:
  uint64_t key_;
  uint64_t stream_;
};

// Returns a 64-bit hash (FNV-1a, then a finalizer) that is the same on every machine and in every release. For stream
// numbers and fingerprints, not for secrets.
uint64_t StableHash(absl::string_view text, uint64_t seed = 0);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PHILOX_H_
