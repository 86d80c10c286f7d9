#ifndef LOCKSTEP_COMMON_BASE_PROCESS_FLOATING_POINT_MODE_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_FLOATING_POINT_MODE_H_

#include "absl/status/status.h"

namespace lockstep {

// Returns OK if the calling thread has the default floating-point mode of IEEE 754. Otherwise returns
// FailedPrecondition with exit code 2, and names the mode: subnormal numbers are treated as zero, as in every program
// that is linked with -ffast-math, or rounding is not to nearest. A thread inherits the mode of the thread that creates
// it, so a check before threads are created covers them. Takes nanoseconds.
absl::Status CheckFloatingPointMode();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_FLOATING_POINT_MODE_H_
