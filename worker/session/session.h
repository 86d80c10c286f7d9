#ifndef LOCKSTEP_WORKER_SESSION_SESSION_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/system_random.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/session/initial_values.h"
#include "lockstep/worker/session/session_retries.h"
#include "lockstep/worker/session/worker_waits.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// A worker's membership in a run: a sequence of sessions with its chief under one incarnation. Each session goes
// through Connect, Open, channel() while heartbeats keep it alive, and Close. If any of these fails, call AwaitRetry
// and Connect again. For use by one thread, except for OnStep, OnProgress, RequestFinish, AddSummary, RequestStop and
// initial_values_digest.
class WorkerSession {
 public:
  struct Options : WorkerWaits {
    // Shown in status and logs.
    std::string name;
    // Describe this machine, for people, and this program.
    std::string host = HostName();
    v1::BuildInfo build = ThisBuildInfo();
    Clock* clock = nullptr;
    Executor* executor = Executor::Threads();
    // Names the chief in messages about its absence.
    std::string chief_address;
    // Brought to the chief if the run is new. Freed with the first session, unless others have it. May be null.
    std::shared_ptr<const InitialValues> initial_values;
    // Draws the incarnation number, which distinguishes this worker from all others, including earlier ones with the
    // same name.
    std::function<uint64_t()> draw_incarnation = SystemRandom64;
    // Called by the heartbeat thread with each reply. Returns true if the reply shows progress.
    std::function<bool(const absl::StatusOr<v1::HeartbeatReply>&)> on_heartbeat;
    // Called before each heartbeat. Returns true if the worker holds a token without computing it
    // (HeartbeatRequest.paused).
    std::function<bool()> is_paused;
  };

  // `client` must outlive this object.
  WorkerSession(Options options, ChiefClient* client);

  // Finds the chief and gets the run's configuration, which stays valid until the next Connect. Returns errors from
  // ChiefClient::GetRunSpec.
  absl::StatusOr<const config::v1::RunSpec*> Connect() ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens a session for a worker with this workload, and its Step stream. Sends the initial values if the chief wants
  // them. Computes the canary if the chief wants it and it is not known from an earlier session. The calling thread
  // must be the one that computes. Returns FailedPrecondition if that thread would compute different bits
  // (CheckFloatingPointMode).
  absl::Status Open(const Workload& workload) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens a new Step stream in the open session after the previous one has ended. Returns errors from
  // ChiefClient::OpenStepChannel.
  absl::Status OpenStream(const Workload& workload);
  const std::shared_ptr<StepChannel>& channel() const { return channel_; }
  // While the open session's channel is idle, makes it prepare batches from `batches` instead of the workload's
  // batches.
  void UseBatches(BatchSource* batches) { batches_ = batches; }
  // Ends the session, or the attempt to open one.
  void Close();

  // Records that the newest session's run has reached `step`. Later sessions report it to their chief. May be called
  // from any thread.
  void OnStep(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the session makes progress: the chief has accepted a block, or the worker is waiting for a token and
  // the chief knows the worker.
  void OnProgress() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the digest of the initial values that a worker brought for the run. Empty if none did, or before the
  // chief's first reply. May be called from any thread.
  std::string initial_values_digest() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the chief's generation in the open session, or 0 if no session is open.
  int64_t generation() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the worker may try again after an attempt that ended with `ended`, or until a stop is requested. If the
  // worker must give up, returns the error to report (SessionRetries).
  absl::Status AwaitRetry(const absl::Status& ended) ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks the open session's chief to end the run (ChiefClient::RequestFinish). Returns Unavailable if no session is
  // open. May be called from any thread.
  absl::Status RequestFinish(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends a summary to the open session's chief (ChiefClient::AddSummary). Returns Unavailable if no session is open.
  // May be called from any thread.
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes all current and future calls of Connect, Open and AwaitRetry return. An open session continues.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stop_requested() const { return stop_requested_.load(); }

 private:
  // Requires a successful Connect.
  const config::v1::RunSpec& config() const { return run_->spec(); }
  absl::Duration chief_wait() const;
  v1::OpenSessionRequest DeclarationOf(const Workload& workload) const;
  absl::StatusOr<v1::OpenSessionReply> OpenChecked(const Workload& workload);
  // Calls OpenSession, after the initial values if the chief wants them.
  absl::StatusOr<v1::OpenSessionReply> OpenWithValues(const v1::OpenSessionRequest& declaration);
  // Logs if the run began from others' initial values, and frees the worker's. Called after the first session was
  // opened.
  void EndInitialValues();
  // Calls OpenSession with the declaration, to which it adds the run and the last step of the previous session.
  absl::StatusOr<v1::OpenSessionReply> CallOpenSession(v1::OpenSessionRequest declaration) ABSL_LOCKS_EXCLUDED(mutex_);
  ChiefClient::StepOptions NewStepOptions() const;
  void StartHeartbeats();

  // Null if there are none, or after the first session was opened.
  std::shared_ptr<const InitialValues> initial_values_;
  const std::string initial_values_digest_;
  const Options options_;
  ChiefClient* const client_;
  const uint64_t incarnation_;
  // Only the thread that runs the sessions accesses the members from here to checked_.
  //
  // The chief's description of the run at the last successful Connect.
  absl::optional<v1::GetRunSpecReply> run_;
  // The chief's reply to the request that opened the session.
  v1::OpenSessionReply opened_;
  std::shared_ptr<StepChannel> channel_;
  BatchSource* batches_ = nullptr;
  std::unique_ptr<PeriodicTask> heartbeats_;
  absl::Time next_log_ = absl::InfinitePast();
  // The last declaration that included a canary. The canary stays valid as long as the rest of the declaration is the
  // same.
  v1::OpenSessionRequest checked_;
  std::atomic<bool> stop_requested_{false};

  Mutex mutex_;
  CondVar stop_;
  // Set by the first Connect.
  absl::optional<SessionRetries> retries_ ABSL_GUARDED_BY(mutex_);
  // The run of the last session, empty before the first session, and the run's newest known step.
  std::string run_id_ ABSL_GUARDED_BY(mutex_);
  std::string digest_of_run_ ABSL_GUARDED_BY(mutex_);
  int64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;
  // Names the open session. Absent if there is none.
  absl::optional<v1::RequestEndRequest> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_H_
