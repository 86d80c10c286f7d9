#ifndef LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_
#define LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_

#include "absl/status/status.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

// Makes the run of a chief asynchronous if its program chooses nothing else, as the original's slim, graph_actions and
// Experiment do without a SyncReplicasOptimizer. The configuration of the op chooses with a policy, or with
// replicas_to_aggregate above 1. A DETERMINISTIC run that the logdir holds continues as it is, and the log says so.
// Workers compute what the chief's configuration says. Errors: InvalidArgument if a valid configuration excludes
// asynchronous training, and those of ReadRunRecord.
absl::Status ApplyDefaultPolicy(SessionOptions* session);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_INIT_DEFAULT_POLICY_H_
