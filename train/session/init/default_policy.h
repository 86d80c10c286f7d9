#ifndef LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_
#define LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_

#include "absl/status/status.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

// Makes a chief's run asynchronous unless its program chooses a policy, as the original's slim, graph_actions and
// Experiment do without a SyncReplicasOptimizer. The op's configuration chooses if it sets a policy or
// replicas_to_aggregate above 1. A DETERMINISTIC run in the logdir stays deterministic, which is logged. Workers follow
// the chief's configuration. Errors: InvalidArgument if a valid configuration excludes asynchronous training; those of
// ReadRunRecord.
absl::Status ApplyDefaultPolicy(SessionOptions* session);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_
