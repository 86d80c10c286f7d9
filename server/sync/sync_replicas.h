#ifndef LOCKSTEP_SERVER_SYNC_SYNC_REPLICAS_H_
#define LOCKSTEP_SERVER_SYNC_SYNC_REPLICAS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/server/ps/non_finite_value.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/server/sync/arrivals/arrival_log.h"
#include "lockstep/server/sync/commit_log.h"
#include "lockstep/server/sync/delivery/value_delivery.h"
#include "lockstep/server/sync/delivery/version_pins.h"
#include "lockstep/server/sync/machine/step_machine.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/step_connection.h"
#include "lockstep/server/sync/workers/step_rates.h"
#include "lockstep/server/sync/workers/work_times.h"
#include "lockstep/server/sync/workers/worker_identity.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/session_state.pb.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// The synchronous step: issues tokens, accepts contributions, and makes one update when all slots are covered, no
// matter by which workers (docs/sync.md; terms: docs/glossary.md). This is the shell around the StepMachine, which
// makes the decisions, and the StepShard, which does the summing. It calls the machine with the lock held, but sums
// frames and calls other code without it (StepEffects). If the policy stages contributions, they are admitted and
// summed one at a time. Owns the connections. Thread-safe. Lock order: admission_mutex_, mutex_, then the shard's
// locks.
class SyncReplicas {
 public:
  static constexpr int64_t kOldVersionBytes = 16 << 20;
  struct Options {
    Clock* clock = nullptr;
    // max_partial_sums is taken from the shard.
    StepMachine::Options machine;
    // Limit on the total size of the old versions of the values that hung workers may keep alive. Two old versions may
    // always be kept, whatever their size. If a commit does not void tokens, each worker with a running lease
    // additionally keeps the version that it computes with.
    int64_t old_version_bytes = kOldVersionBytes;
    // Receives every update in order, and provides the session state that snapshots contain. May be null.
    CommitLog* log = nullptr;
    // Receives every staged contribution that counts, in order. May be null.
    ArrivalLog* arrivals = nullptr;
    // The command that recomputes a slot, "lockstep replay --logdir=DIR", for error messages. Empty if there is none.
    std::string replay_command;
    // The end of that command, after the slot's flags: " -- PROGRAM", or empty.
    std::string replay_program;
    // The effect of a value that is not finite: it fails the run, ends the run before its step, or makes the step count
    // without changing anything else. The last effect is ensured by the shard.
    enum class NonFinite { kFails, kEnds, kSkipsStep };
    NonFinite non_finite = NonFinite::kFails;
    // Receives the events of the run. kFailed means that a loss, a gradient or an update value is not finite (with
    // NonFinite::kFails), or that an audit found a mismatch. kFinished means the last step, the end of the input, or
    // EndAt.
    RunEvents* events = nullptr;
  };

  // `policy` must begin at the shard's step.
  SyncReplicas(Options options, std::unique_ptr<StepShard> shard, std::unique_ptr<StepPolicy> policy);
  // All connections must be closed, and none may be used afterwards.
  ~SyncReplicas();

  // Registers a stream. A second stream of a session closes the first with Aborted. `changes` is
  // GradientSettings.changes of the worker's settings.
  std::shared_ptr<StepConnection> Connect(uint64_t session, const WorkerIdentity& worker, ValuePath value_path,
                                          std::shared_ptr<StepListener> listener, int64_t changes = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Renews the lease of the session's token.
  void Heartbeat(uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Voids expired leases and reassigns the work that has become free. Must be called several times a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the state at the last committed step.
  VariableSnapshot TakeSnapshot() const ABSL_LOCKS_EXCLUDED(mutex_);

  using Limiter = StepMachine::Limiter;
  // Lets the step from s to s + 1 begin only if s <= limit for every limiter. If a limit is below the current step, the
  // run is held when the step in progress is committed.
  void SetLimit(Limiter limiter, int64_t limit) ABSL_LOCKS_EXCLUDED(mutex_);
  // Holds the run until ReleaseAfterChange has been called as many times as this function. The hold begins once the
  // step in progress, if any, is committed or no worker computes it any longer. Returns the global step at which the
  // run will be held. If the step in progress is given up, the run is held one step earlier.
  int64_t HoldForChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until the run is held. Returns the global step, or nullopt if the run has ended in any way.
  absl::optional<int64_t> AwaitHeld() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseAfterChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the error that Assign would return, without setting anything.
  absl::Status CheckAssign(absl::Span<const AssignedValue> values) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns OK while the run is held between two steps, OutOfRange if the run has ended, Cancelled if it was stopped,
  // and FailedPrecondition otherwise.
  absl::Status CheckHeld() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets values while the run is held. Workers that already have values of this step receive the new ones before their
  // next token. Returns the errors of CheckHeld and of VariableStore::Assign.
  absl::Status Assign(absl::Span<const AssignedValue> values, ChangedBy by = ChangedBy::kProgram)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Applies these settings to the following steps. Call it while the run is held. Workers get `for_workers`, if
  // present, with their next token. Returns the errors of CheckHeld and of VariableStore::SetOptimizer.
  absl::Status ChangeSettings(const v1::SessionState::Settings& settings,
                              absl::optional<v1::GradientSettings> for_workers = absl::nullopt,
                              ChangedBy by = ChangedBy::kProgram) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that another snapshot may be taken. Has an effect only with StepMachine::Options::await_room.
  void OnRoomForSnapshot() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a snapshot that is not due. Returns nullopt if there is no room for it.
  absl::optional<VariableSnapshot> TakeSnapshotIfRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the run at this global step, or one step earlier if no worker computes its last step. See StepMachine.
  void EndAt(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the global step at which the run ends.
  int64_t total_steps() const ABSL_LOCKS_EXCLUDED(mutex_);
  // If the run has ended before its last step without a call of EndAt, returns the reason, otherwise an empty string.
  std::string end_reason() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until RunEvents::OnCommitted has returned for every committed step. Returns false if that has not happened
  // by `deadline`. Must not be called from OnCommitted.
  bool AwaitCommitsTold(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops committing steps and issuing tokens. Discards the contributions to the step in progress and any that still
  // arrive. Does not notify workers, because the chief that resumes the run will have tokens for them.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops issuing tokens, and notifies every worker that the run has ended.
  void Finish(std::string message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if no worker is connected.
  bool idle() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool connected(uint64_t session) const ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t step() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills in global_step, loss, steps_per_second, learning_rate, worker (by name) and the counters.
  void FillStatus(v1::RunStatus* status) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls WorkTimes::Fill, and fills in the counters of tokens, bytes and the admission of contributions.
  void FillTimes(v1::WatchRunReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls WorkTimes::FillTimeLine.
  void FillTimeLine(WorkTimes::Cursor* cursor, v1::WatchRunReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class StepConnection;

  // The actions to take after the lock is released, in this order.
  struct Outbox {
    struct Ending {
      std::shared_ptr<StepListener> listener;
      absl::Status why;
      bool at_once = false;
    };
    std::vector<RunEvent> events;
    std::vector<Ending> endings;
    absl::InlinedVector<std::shared_ptr<StepListener>, 2> ready;
    absl::InlinedVector<std::shared_ptr<StepListener>, 2> resumed;
    absl::optional<VariableSnapshot> snapshot;
    absl::optional<CommittedStep> committed;
    // kFinished, kFailed and kLeft come last.
    std::vector<RunEvent> last_events;
  };

  absl::Status OnFrame(StepConnection* connection, const StepFrame& frame, bool* waits) ABSL_LOCKS_EXCLUDED(mutex_);
  bool NextReply(StepConnection* connection, StepReplyFrame* reply) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountSent(const StepConnection& connection, int64_t bytes, WirePath path) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(StepConnection* connection) ABSL_LOCKS_EXCLUDED(mutex_);

  // Does the work of OnFrame, except for the outbox.
  absl::Status Handle(StepConnection* connection, const StepFrame& frame, bool* waits, Outbox* outbox)
      ABSL_LOCKS_EXCLUDED(mutex_, admission_mutex_);
  // The parts of Handle. `sums` receives the sums that the frame is added to, or null if the frame is only checked.
  absl::Status Begin(StepConnection* connection, const StepFrame& frame, StepMachine::FrameStart* start,
                     std::shared_ptr<StepSums>* sums) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Sum(StepConnection* connection, const StepFrame& frame, bool begins, StepSums* sums,
                   StepMachine::FrameResult* result) const;
  // Records the values and settings with which a worker computes this token, for options_.arrivals.
  void NoteToken(const v1::Token& token, int64_t values_step, StepConnection* connection) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns InvalidArgument if a value in the sums that was contributed to `block` of `step` is not finite. The error
  // counts steps as logs do, so it names the global step after the update.
  absl::Status CheckFinite(const std::string& worker, int64_t step, const SlotBlock& block, const StepSums& sums) const;
  // Adds the complete staged contribution to the step's `sums` if it counts.
  void AdmitStaged(StepConnection* connection, StepMachine::FrameResult* result, std::shared_ptr<StepSums>* sums)
      ABSL_LOCKS_EXCLUDED(mutex_) ABSL_EXCLUSIVE_LOCKS_REQUIRED(admission_mutex_);
  absl::Status Finish(StepConnection* connection, const StepFrame& frame, const absl::Status& summed,
                      const std::shared_ptr<StepSums>& sums, StepMachine::FrameResult* result, Outbox* outbox)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `why` is the reason if the frame ends the run.
  absl::Status End(StepConnection* connection, const StepFrame& frame, const absl::Status& summed,
                   const StepMachine::FrameResult& result, absl::string_view why, Outbox* outbox)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status CheckHeldLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Discards the contributions to the step in progress.
  void DropSums() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  VariableSnapshot TakeSnapshotLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Commit(absl::Time now, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records that the last committed step changed nothing. Logs only some of these steps.
  void NoteSkipped(const NonFiniteValue& why, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes the streams that keep too many old versions of the values alive, and cancels those that have already ended
  // but whose replies the worker has not read to the end. Nothing is lost, because contributions to those steps no
  // longer count.
  void CloseExcessPins(absl::Time now, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const StepEffects& effects, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls Take, and commits the step if the effects require it.
  void TakeAndCommit(const StepEffects& effects, absl::Time now, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes and removes the connection, unless it was removed before.
  void Remove(uint64_t session, const absl::Status& why, bool at_once, Outbox* outbox)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes the workers to which some of the next values can now be sent, because these have become final.
  // `frame_session` may just have become one of these workers.
  void WakeForEarlyValues(uint64_t frame_session, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeIfEarlyValues(uint64_t session, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CarryOut(Outbox* outbox) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const bool stages_;  // the policy stages contributions

  // Held from the admission of a staged contribution until it is summed, and while the end of an input takes effect.
  Mutex admission_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  const std::unique_ptr<StepShard> shard_ ABSL_PT_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<StepConnection>> connections_ ABSL_GUARDED_BY(mutex_);
  StepMachine machine_ ABSL_GUARDED_BY(mutex_);
  StepRates rates_ ABSL_GUARDED_BY(mutex_);
  WorkTimes times_ ABSL_GUARDED_BY(mutex_);
  // Pins of values and estimates that leave the process.
  VersionPins pins_ ABSL_GUARDED_BY(mutex_);
  // The sums of the step in progress. Null if there is none.
  std::shared_ptr<StepSums> sums_ ABSL_GUARDED_BY(mutex_);
  // Number of segments of the next values for which workers were woken.
  size_t announced_segments_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string finish_message_ ABSL_GUARDED_BY(mutex_);
  std::string end_reason_ ABSL_GUARDED_BY(mutex_);
  struct Changes {
    int holders = 0;                   // HoldForChange less ReleaseAfterChange
    CondVar not_running;               // no step is in progress
    v1::GradientSettings for_workers;  // the newest
  };
  Changes changes_ ABSL_GUARDED_BY(mutex_);
  // Commits whose OnCommitted has not returned.
  struct Untold {
    int commits = 0;
    CondVar none;
  };
  Untold untold_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_SYNC_REPLICAS_H_
