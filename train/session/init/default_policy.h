#ifndef LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_
#define LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_

#include "absl/status/status.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

// Makes a chief's run asynchronous if its program chooses nothing else, as the original's slim, graph_actions and
// Experiment do without a SyncReplicasOptimizer. The configuration of the op chooses if it sets a policy or
// replicas_to_aggregate above 1. A DETERMINISTIC run in the logdir continues as it is, which is logged. Workers follow
// the chief's configuration. Errors: InvalidArgument if a valid configuration excludes asynchronous training; those of
// ReadRunRecord.
absl::Status ApplyDefaultPolicy(SessionOptions* session);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_
