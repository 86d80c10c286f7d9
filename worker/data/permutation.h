#ifndef LOCKSTEP_WORKER_DATA_PERMUTATION_H_
#define LOCKSTEP_WORKER_DATA_PERMUTATION_H_

#include <array>
#include <cstdint>

namespace lockstep {

// The order of the examples in one epoch: a permutation of [0, n). Each position is computed from (seed, epoch) on
// demand, so the permutation needs no memory and is the same on every worker. A Feistel network permutes the smallest
// [0, 2^b) that contains [0, n). Results outside of [0, n) are permuted again until they fall inside, which takes at
// most two permutations on average (cycle walking: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA
// 2002). Constant after construction, thread-safe.
class Permutation {
 public:
  // `n` must be in [1, 2^62].
  Permutation(int64_t n, uint64_t seed, int64_t epoch);

  int64_t size() const { return n_; }

  // Returns the example at position `place`, which must be in [0, n).
  int64_t At(int64_t place) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t Encrypt(uint64_t x) const;

  int64_t n_;
  // Numbers of bits in the upper and the lower half. Their sum is b.
  int upper_bits_;
  int lower_bits_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_PERMUTATION_H_
