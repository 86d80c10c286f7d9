#ifndef LOCKSTEP_COMMON_BASE_BACKOFF_H_
#define LOCKSTEP_COMMON_BASE_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {

// Computes the delay before each retry. The delay grows by a factor up to a limit and is shortened at random, so that
// many clients do not call a server at the same instant when it comes back. Does not wait itself. The delays depend
// only on the options and the seed. Thread-compatible.
class Backoff {
 public:
  struct Options {
    absl::Duration initial = absl::Milliseconds(100);
    absl::Duration max = absl::Seconds(10);
    double factor = 2;
    // A delay d is replaced by a random one in ((1 - jitter) * d, d]. Must be in [0, 1].
    double jitter = 0.3;
  };

  Backoff(const Options& options, uint64_t seed);

  // Returns the delay before the next attempt.
  absl::Duration Next();
  // Makes the next delay the initial one. Call this after a success.
  void Reset();

 private:
  const Options options_;
  const Philox random_;
  uint64_t calls_ = 0;
  absl::Duration delay_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_BACKOFF_H_
