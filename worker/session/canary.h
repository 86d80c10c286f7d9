#ifndef LOCKSTEP_WORKER_SESSION_CANARY_H_
#define LOCKSTEP_WORKER_SESSION_CANARY_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// Computes the canary with which a worker joins a run (docs/wire.md): the batch of step 0, slot 0, on values that the
// chief provides to the session. Returns the digests for OpenSessionRequest.canary_digest, which are zeros if the input
// ends before that batch. Has no effect on later slots. Returns errors from GetCanaryValues, the batches and the model,
// and Cancelled soon after `stop` becomes true.
absl::StatusOr<std::vector<uint64_t>> ComputeCanary(const config::v1::RunSpec& config, const Workload& workload,
                                                    const v1::OpenSessionReply& session, const std::atomic<bool>& stop,
                                                    ChiefClient* client);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_CANARY_H_
