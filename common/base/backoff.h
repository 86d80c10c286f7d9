#ifndef LOCKSTEP_COMMON_BASE_BACKOFF_H_
#define LOCKSTEP_COMMON_BASE_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"

namespace lockstep {

// How long to wait before each new attempt: exponential, capped, with jitter that depends on the seed alone.
// Not thread-safe.
class Backoff {
 public:
  struct Options {
    absl::Duration initial = absl::Milliseconds(100);
    absl::Duration maximum = absl::Seconds(10);
    double factor = 2;
    // A wait is between 1 - jitter and 1 times its full length.
    double jitter = 0.3;
    uint64_t seed = 0;
  };

  explicit Backoff(const Options& options) : options_(options) {}

  // The wait before the next attempt.
  absl::Duration Next();
  // An attempt has succeeded: the next wait is the initial one.
  void Reset() { attempt_ = 0; }

 private:
  const Options options_;
  int attempt_ = 0;
  uint64_t draws_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_BACKOFF_H_
