#include "lockstep/common/base/backoff.h"

#include <algorithm>

namespace lockstep {

Backoff::Backoff(const Options& options, uint64_t seed)
    : options_(options), random_(seed, StableHash("backoff")), delay_(std::min(options.initial, options.max)) {}

absl::Duration Backoff::Next() {
  const double shrink = options_.jitter * static_cast<double>(Philox::ToUniform(random_.At(calls_++)[0]));
  const absl::Duration next = delay_ * (1 - shrink);
  delay_ = std::min(delay_ * options_.factor, options_.max);
  return next;
}

void Backoff::Reset() { delay_ = std::min(options_.initial, options_.max); }

}  // namespace lockstep
