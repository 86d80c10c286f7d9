#ifndef LOCKSTEP_SERVER_CHIEF_SESSIONS_H_
#define LOCKSTEP_SERVER_CHIEF_SESSIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/server/chief/checkpoint/brought_values.h"
#include "lockstep/server/chief/run/run_contract.h"
#include "lockstep/server/chief/run_state.h"
#include "lockstep/server/sync/step_connection.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The handlers of workers' calls: declarations, sessions and streams. Thread-safe.
class Sessions {
 public:
  // `run` must outlive this.
  explicit Sessions(RunState* run) : run_(run) {}

  // The calls of ChiefService (proto/lockstep/v1/chief.proto). `peer` is the identity that the caller has proved, or
  // empty if the chief requires no proof. Only the peer that opened a session may use it; others get PermissionDenied.
  v1::GetRunSpecReply GetRunSpec() const;
  // The first call may take a long time, because it computes initial values or restores a checkpoint; concurrent
  // callers get Unavailable in the meantime.
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request, const std::string& peer = {})
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request,
                                                             const std::string& peer = {})
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request,
                                                           const std::string& peer = {})
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request, const std::string& peer = {})
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Records the request; RunEnds::Wait carries it out. Returns FailedPrecondition for a session whose worker has not
  // computed the canary.
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request, const std::string& peer = {})
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Like RequestFinish, but for operators. They need no session.
  absl::StatusOr<v1::RequestEndReply> RequestFinishBy(const std::string& peer, const v1::RequestEndRequest& request)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request, const std::string& peer = {})
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Marks the session as used. Errors: Aborted for an unknown session or an old generation.
  absl::Status CheckSession(uint64_t session_id, int64_t generation, const std::string& peer = {})
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Returns true if ValuePath::kShared is possible.
  bool shares_memory() const { return run_->shared_memory != nullptr; }
  // Opens the Step stream of a session; see SyncReplicas::Connect. Errors: Aborted for an unknown session or an old
  // generation; FailedPrecondition if its worker has not computed the canary. `address` is where the stream comes from,
  // for display (WorkerStatus.address).
  absl::StatusOr<std::shared_ptr<StepConnection>> OpenStep(uint64_t session_id, int64_t generation,
                                                           ValuePath value_path, std::shared_ptr<StepListener> listener,
                                                           const std::string& peer = {}, std::string address = {})
      ABSL_LOCKS_EXCLUDED(run_->mutex);

 private:
  // Returns 0 if the caller's model and data match the run's; the first caller declares them for the run. If the run is
  // new and takes the caller's initial values, declares nothing and returns the id for SetInitialValues. A caller
  // with older settings (`changes`) is compared with the declarations for those settings, and gets the newest settings
  // with its first token. Otherwise no worker could join a run whose program changes settings at every step. Returns
  // Aborted if this incarnation does not know those declarations. Compares without a lock, because a model may be
  // large.
  absl::StatusOr<uint64_t> Agree(const v1::OpenSessionRequest& request, int64_t changes, const std::string& peer)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Records what the request declares and the run does not know yet.
  absl::Status Declare(std::shared_ptr<const RunContract> known, const v1::OpenSessionRequest& request)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Makes the request the run's first declaration. Returns as Agree does.
  absl::StatusOr<uint64_t> DeclareFirst(const v1::OpenSessionRequest& request, const std::string& peer)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Returns the id with which the caller brings initial values. Returns 0 if it may declare the run, after it has moved
  // the values that the caller brought, if any, to `values`. Errors: Unavailable while another worker is bringing some;
  // those of CheckBroughtValuesFit.
  absl::StatusOr<uint64_t> TakeInitialValues(const v1::OpenSessionRequest& request, const std::string& peer,
                                             absl::optional<BroughtValues::Whole>* values)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Logs that the worker's initial values are not the run's, if it has some.
  void NoteInitialValues(const v1::OpenSessionRequest& request) const;
  // If the request does not agree with `known`, but its program may use different functions, records the difference and
  // returns the part of `known` that still applies. Otherwise returns `known`, or the error of RunContract::Check.
  absl::StatusOr<std::shared_ptr<const RunContract>> AdoptFunctions(std::shared_ptr<const RunContract> known,
                                                                    const v1::OpenSessionRequest& request)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Returns OK if the caller has served no other run. If its other run shows that the chief has the wrong logdir,
  // abandons this run and returns Unavailable. Otherwise returns FailedPrecondition.
  absl::Status CheckRun(const v1::OpenSessionRequest& request) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Abandons this run, because the worker has served a run that should continue here.
  absl::Status AbandonFor(const v1::OpenSessionRequest& request) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Reports that the caller is refused (kRefused), and removes its session if it has no stream.
  void Refuse(const v1::OpenSessionRequest& request, const absl::Status& why, const std::string& peer)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Calls RunHistory::CheckOwned before a worker's declaration is recorded. Returns Unavailable if the logdir is lost,
  // because the worker did nothing wrong and will find the chief that has the logdir.
  absl::Status CheckOwnedForWorker() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Returns the caller's session, creating it if needed. Errors: Unavailable if there are too many; PermissionDenied if
  // another peer has opened it.
  absl::StatusOr<uint64_t> FindOrAddSession(const v1::OpenSessionRequest& request, int64_t changes,
                                            const std::string& peer) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Removes the oldest session without a stream. Returns false if all have one.
  bool RemoveOldestSession() ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->mutex);

  RunState* const run_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_SESSIONS_H_
