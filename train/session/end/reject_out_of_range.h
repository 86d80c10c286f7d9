#ifndef LOCKSTEP_TRAIN_SESSION_END_REJECT_OUT_OF_RANGE_H_
#define LOCKSTEP_TRAIN_SESSION_END_REJECT_OUT_OF_RANGE_H_

#include "absl/status/status.h"

namespace lockstep::train {

// Returns the status of a user's function that is not part of the loop, such as an init_fn. OutOfRange, which would be
// mistaken for a successful end of the run, becomes FailedPrecondition.
absl::Status RejectOutOfRange(const absl::Status& status);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_REJECT_OUT_OF_RANGE_H_
