#ifndef LOCKSTEP_KERNELS_PHILOX_BLOCK_H_
#define LOCKSTEP_KERNELS_PHILOX_BLOCK_H_

#include <array>
#include <cstdint>

namespace lockstep {

// The constants of Philox4x32-10.
struct PhiloxConstants {
  static constexpr uint32_t kMultiplier0 = 0xD2511F53;
  static constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
  static constexpr uint32_t kWeyl0 = 0x9E3779B9;
  static constexpr uint32_t kWeyl1 = 0xBB67AE85;
  static constexpr int kRounds = 10;
};

// Returns block `index` of a stream.
inline std::array<uint32_t, 4> PhiloxBlock(uint64_t key, uint64_t stream, uint64_t index) {
  using P = PhiloxConstants;
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                               static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < P::kRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(P::kMultiplier0) * c[0];
    const uint64_t p1 = static_cast<uint64_t>(P::kMultiplier1) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += P::kWeyl0;
    k1 += P::kWeyl1;
  }
  return c;
}

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_PHILOX_BLOCK_H_
