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
// chief gives to the session. Returns what OpenSessionRequest.canary_digest is to hold: zeros if the input ends before
// that batch. Changes nothing: the next slot is computed as if there had been none. Errors: those of GetCanaryValues,
// the batches and the model; Cancelled soon after `stop`.
absl::StatusOr<std::vector<uint64_t>> ComputeCanary(const config::v1::RunSpec& config, const Workload& workload,
                                                    const v1::OpenSessionReply& session, const std::atomic<bool>& stop,
                                                    ChiefClient* client);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_CANARY_H_
