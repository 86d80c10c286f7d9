#ifndef LOCKSTEP_TRAIN_SESSION_INIT_INIT_SESSION_H_
#define LOCKSTEP_TRAIN_SESSION_INIT_INIT_SESSION_H_

#include <functional>

#include "absl/status/status.h"
#include "lockstep/train/saver/assign_from.h"
#include "lockstep/train/session/session.h"

namespace lockstep::train {

// Returns an init_fn that calls `init_fn` with a session, as TensorFlow does: after the seed or a warm start, before
// the first step. The session's Assign sets variables of the model; if a name is given twice, the last value counts.
// GlobalStep returns 0. All other operations return FailedPrecondition, because the run has no values and no step yet.
// The session is valid only during the call. Errors of Assign: InvalidArgument for a name that is not a variable, or
// for a wrong shape or type.
InitFunction InitWithSession(std::function<absl::Status(Session&)> init_fn);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_INIT_INIT_SESSION_H_
