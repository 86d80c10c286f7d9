#include "lockstep/server/ps/all_finite.h"

namespace lockstep {

bool AllFinite(const float* values, int64_t n) {
  // x * 0 is NaN when x is NaN or infinite, and 0 otherwise. Lanes, so that the processor adds them side by side.
  constexpr int kLanes = 32;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane] * 0.0f;
  }
  float sum = 0;
  for (; i < n; ++i) sum += values[i] * 0.0f;
  for (const float lane : lanes) sum += lane;
  return sum == 0;
}

}  // namespace lockstep
