#ifndef LOCKSTEP_COMMON_BASE_FLOATING_POINT_MODE_H_
#define LOCKSTEP_COMMON_BASE_FLOATING_POINT_MODE_H_

#include "absl/status/status.h"

namespace lockstep {

// Whether the calling thread computes as IEEE 754 has it by default. FailedPrecondition, with exit code 2, names what
// is set instead: that subnormal numbers count as zero, as in every program that is linked with -ffast-math, or another
// rounding than to the nearest. A thread begins with the mode of the one that made it, so a check before threads are
// made stands for them. Takes nanoseconds.
absl::Status CheckFloatingPointMode();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_FLOATING_POINT_MODE_H_
