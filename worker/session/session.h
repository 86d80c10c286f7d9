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
#include "lockstep/worker/session/session_retries.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// A worker's membership in a run: sessions with its chief, one after the other, under one incarnation. Life of each:
// Connect, Open, channel() while heartbeats keep it alive, Close; when any of it fails, AwaitRetry and Connect again.
// For one thread, but for OnStep, OnProgress and RequestStop.
class WorkerSession {
 public:
  struct Options {
    // Shown in status and logs.
    std::string name;
    // This machine, for people, and this program.
    std::string host = HostName();
    v1::BuildInfo build = ThisBuildInfo();
    Clock* clock = nullptr;
    Executor* executor = Executor::Threads();
    // Names the chief in messages about its absence.
    std::string chief_address;
    // Limits the search for an absent chief. Absent: the configuration's chief_wait_seconds, or 600 s before it is
    // known.
    absl::optional<absl::Duration> chief_wait;
    // No token before the global step reaches this; the configuration's when absent.
    absl::optional<int64_t> startup_delay_steps;
    // Draws what tells this life of the worker from all others.
    std::function<uint64_t()> draw_incarnation = SystemRandom64;
    // Called by the thread of the heartbeats with each answer; returns whether it shows progress.
    std::function<bool(const absl::StatusOr<v1::HeartbeatReply>&)> on_heartbeat;
    // Asked before each: whether the worker has a token that it does not compute (HeartbeatRequest.paused).
    std::function<bool()> is_paused;
  };

  // `client` must outlive this.
  WorkerSession(Options options, ChiefClient* client);

  // Finds the chief and asks for the run's configuration, which stays valid until the next Connect. Errors are those of
  // ChiefClient::GetRunSpec.
  absl::StatusOr<const config::v1::RunSpec*> Connect() ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens a session for a worker with this workload, and its Step stream. Computes the canary if the chief wants it and
  // it is not known from an earlier session. FailedPrecondition where the calling thread, which is to compute, would
  // compute other bits (CheckFloatingPointMode).
  absl::Status Open(const Workload& workload) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens another Step stream of the open session, in place of one that has ended. Errors: those of
  // ChiefClient::OpenStepChannel.
  absl::Status OpenStream(const Workload& workload);
  const std::shared_ptr<StepChannel>& channel() const { return channel_; }
  // The channel of the open session prepares batches of `batches`, in place of the workload's, while it is idle.
  void UseBatches(BatchSource* batches) { batches_ = batches; }
  // The session, or the attempt to open one, is over.
  void Close();

  // Notes that the run of the newest session has reached `step`. Later sessions report it to their chief. From any
  // thread.
  void OnStep(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // The session brings something: a block was taken, or the worker waits for a token and is known to the chief.
  void OnProgress() ABSL_LOCKS_EXCLUDED(mutex_);
  // The chief's life with which the open session is.
  int64_t generation() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until another attempt may follow one that ended with this, or a stop is requested. Errors: the one with which
  // to give up (SessionRetries).
  absl::Status AwaitRetry(const absl::Status& ended) ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks the chief of the open session for the end of the run (ChiefClient::RequestFinish). Unavailable when none is
  // open. From any thread.
  absl::Status RequestFinish(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends a summary to the chief of the open session (ChiefClient::AddSummary). Unavailable when none is open. From any
  // thread.
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends Connect, Open and AwaitRetry, those under way and all later ones. An open session continues.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stop_requested() const { return stop_requested_.load(); }

 private:
  // After Connect.
  const config::v1::RunSpec& config() const { return run_->spec(); }
  absl::Duration chief_wait() const;
  v1::OpenSessionRequest DeclarationOf(const Workload& workload) const;
  absl::StatusOr<v1::OpenSessionReply> OpenChecked(const Workload& workload);
  // Calls OpenSession with the declaration and the run that was served before.
  absl::StatusOr<v1::OpenSessionReply> CallOpenSession(v1::OpenSessionRequest declaration) ABSL_LOCKS_EXCLUDED(mutex_);
  ChiefClient::StepOptions NewStepOptions() const;
  void StartHeartbeats();

  const Options options_;
  ChiefClient* const client_;
  const uint64_t incarnation_;
  // Accessed only by the thread that runs the sessions, up to checked_.
  // What the chief said of the run at the last Connect that found it.
  absl::optional<v1::GetRunSpecReply> run_;
  // The chief's answer that opened the session.
  v1::OpenSessionReply opened_;
  std::shared_ptr<StepChannel> channel_;
  BatchSource* batches_ = nullptr;
  std::unique_ptr<PeriodicTask> heartbeats_;
  absl::Time next_log_ = absl::InfinitePast();
  // The last declaration with its canary: as long as it stays the same, so does the canary.
  v1::OpenSessionRequest checked_;
  std::atomic<bool> stop_requested_{false};

  Mutex mutex_;
  CondVar stop_;
  // Since the first Connect.
  absl::optional<SessionRetries> retries_ ABSL_GUARDED_BY(mutex_);
  // The run of the last session, and the newest step of it that is known; empty before the first one.
  std::string run_id_ ABSL_GUARDED_BY(mutex_);
  int64_t last_step_ ABSL_GUARDED_BY(mutex_) = 0;
  // Names the open session; absent when there is none.
  absl::optional<v1::RequestEndRequest> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_H_
