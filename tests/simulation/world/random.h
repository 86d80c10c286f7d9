#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_RANDOM_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_RANDOM_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace lockstep {
namespace simulation {

// The only source of randomness in a life: a sequence of numbers that depends only on the seed (splitmix64). Not
// thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Returns a number in [0, n).
  uint64_t Below(uint64_t n) { return n <= 1 ? 0 : Next() % n; }
  // Returns a number in [low, high].
  int64_t Between(int64_t low, int64_t high) { return low + static_cast<int64_t>(Below(high - low + 1)); }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return absl::Nanoseconds(Between(absl::ToInt64Nanoseconds(low), absl::ToInt64Nanoseconds(high)));
  }
  bool Chance(double probability) { return static_cast<double>(Next() >> 11) * 0x1p-53 < probability; }
  template <typename T>
  const T& Pick(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_RANDOM_H_
