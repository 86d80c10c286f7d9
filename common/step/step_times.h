#ifndef LOCKSTEP_COMMON_STEP_STEP_TIMES_H_
#define LOCKSTEP_COMMON_STEP_STEP_TIMES_H_

#include <cstdint>

#include "absl/time/time.h"

namespace lockstep {

// The time that a worker has spent on each activity since the end of its last contribution. A value type.
struct StepTimes {
  absl::Duration batch;    // fetching input batches
  absl::Duration compute;  // everything else between the token and the end of the contribution
  absl::Duration send;     // handing reports and gradients to the stream
  absl::Duration wait;     // ending the last contribution, and waiting for the token and its values
};

// Returns the times in the encoding of StepRequest.times. Rounds each time down to the 11 significant bits of the
// format.
uint64_t EncodeStepTimes(const StepTimes& times);
StepTimes DecodeStepTimes(uint64_t encoded);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_STEP_TIMES_H_
