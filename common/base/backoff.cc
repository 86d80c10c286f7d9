#include "common/base/backoff.h"

#include <algorithm>

#include "common/base/philox.h"

namespace lockstep {

absl::Duration Backoff::Next() {
  absl::Duration full = options_.initial;
  for (int i = 0; i < attempt_ && full < options_.maximum; ++i) full *= options_.factor;
  ++attempt_;
  const double fraction = Philox::ToUniform(Philox(options_.seed, StableHash("backoff")).At(draws_++)[0]);
  return std::min(full, options_.maximum) * (1 - options_.jitter * fraction);
}

}  // namespace lockstep
