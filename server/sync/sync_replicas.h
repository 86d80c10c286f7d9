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
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/step/step_frame.h"
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

// The synchronous step: tokens out, contributions in, one update when all slots are covered, whichever workers
// covered them (docs/sync.md; the words: docs/glossary.md). The shell around the StepMachine, which decides, and the
// StepShard, which sums: it locks, sums without the lock, and carries out what the machine says, also without the lock.
// Under a policy that stages contributions, they are admitted and summed one at a time.
// Owns the connections. Thread-safe. Lock order: admission_mutex_, mutex_, then those of the shard.
class SyncReplicas : private StepConnection::Owner {
 public:
  static constexpr int64_t kOldVersionBytes = 16 << 20;
  struct Options {
    Clock* clock = nullptr;
    // Its max_partial_sums is the shard's.
    StepMachine::Options machine;
    // The limit of the old versions of the values that hung workers may keep; two may stay, whatever their size. If a
    // commit voids no tokens, each worker whose lease runs keeps the version that it computes with in addition.
    int64_t old_version_bytes = kOldVersionBytes;
    // Gets every update in order, and is asked for what snapshots are to hold; may be null.
    CommitLog* log = nullptr;
    // Gets every staged contribution that counts, in order; may be null.
    ArrivalLog* arrivals = nullptr;
    // The command that computes a slot again, "lockstep replay --logdir=DIR", for errors; empty if there is none.
    std::string replay_command;
    // What something that is not finite does: it fails the run; ends it before its step; or the step counts and nothing
    // else changes, which the shard sees to.
    enum class NonFinite { kFails, kEnds, kSkipsStep };
    NonFinite non_finite = NonFinite::kFails;
    // Receives what happens. kFailed: a loss, a gradient or an update value is not finite (with NonFinite::kFails), or
    // an audit found a difference. kFinished: the last step, the end of the input, or EndAt.
    RunEvents* events = nullptr;
  };

  // `policy` is one for the shard's step.
  SyncReplicas(Options options, std::unique_ptr<StepShard> shard, std::unique_ptr<StepPolicy> policy);
  // All connections must be closed, and none be used afterwards.
  ~SyncReplicas() override;

  // Registers a stream. A second stream of a session closes the first with Aborted. `changes` is
  // GradientSettings.changes of the settings that the worker has.
  std::shared_ptr<StepConnection> Connect(uint64_t session, const WorkerIdentity& worker, ValuePath value_path,
                                          std::shared_ptr<StepListener> listener, int64_t changes = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Renews the lease of the session's token.
  void Heartbeat(uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Voids expired leases and gives out what became free. To be called several times a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  // The state at the last committed step.
  VariableSnapshot TakeSnapshot() const ABSL_LOCKS_EXCLUDED(mutex_);

  using Limiter = StepMachine::Limiter;
  // The step that makes s + 1 of s begins only if s <= limit, of every limiter: with one below the present step, the
  // run is held when the step in progress is committed.
  void SetLimit(Limiter limiter, int64_t limit) ABSL_LOCKS_EXCLUDED(mutex_);
  // Holds the run as soon as the step in progress, if there is one, is committed, or no worker is at it any more, until
  // as many ReleaseAfterChange have been called. Returns the global step at which it is held unless the step in
  // progress is given up, in which case it is held one before.
  int64_t HoldForChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until it is held; returns the global step. nullopt when the run has ended instead, in whatever way.
  absl::optional<int64_t> AwaitHeld() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseAfterChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // The errors of Assign, without setting anything.
  absl::Status CheckAssign(absl::Span<const AssignedValue> values) const ABSL_LOCKS_EXCLUDED(mutex_);
  // OK while the run is held between two steps. Errors: OutOfRange when it is over, Cancelled when it was stopped,
  // else FailedPrecondition.
  absl::Status CheckHeld() const ABSL_LOCKS_EXCLUDED(mutex_);
  // While the run is held: sets values. Workers that hold other values of this step are sent these before a token.
  // Errors: those of CheckHeld and of VariableStore::Assign.
  absl::Status Assign(absl::Span<const AssignedValue> values, ChangedBy by = ChangedBy::kProgram)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // While the run is held: the steps that follow have these settings. Workers get `for_workers`, if present, with their
  // next token. Errors: those of CheckHeld and of VariableStore::SetOptimizer.
  absl::Status ChangeSettings(const v1::SessionState::Settings& settings,
                              absl::optional<v1::GradientSettings> for_workers = absl::nullopt,
                              ChangedBy by = ChangedBy::kProgram) ABSL_LOCKS_EXCLUDED(mutex_);
  // With await_room: another snapshot may be taken.
  void OnRoomForSnapshot() ABSL_LOCKS_EXCLUDED(mutex_);
  // A snapshot that is not due; nullopt when there is no room for it.
  absl::optional<VariableSnapshot> TakeSnapshotIfRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  // The run ends at this global step, or before its last step if no worker is at that; see StepMachine.
  void EndAt(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // The global step at which it ends.
  int64_t total_steps() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the run has ended before its last step without a call of EndAt; empty otherwise.
  std::string end_reason() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until the RunEvents::OnCommitted of every step that is committed has returned; false when that has not come
  // by `deadline`. Must not be called from OnCommitted.
  bool AwaitCommitsTold(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // No further step is committed and no further token given: what was contributed to the step in progress is thrown
  // away, and so is what comes. Workers are not notified: the chief that resumes the run has tokens for them.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // No further token is given; every worker is notified that the run is over.
  void Finish(std::string message) ABSL_LOCKS_EXCLUDED(mutex_);
  // No worker is connected any more.
  bool idle() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool connected(uint64_t session) const ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t step() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills global_step, loss, steps_per_second, learning_rate, worker (by name) and the counters.
  void FillStatus(v1::RunStatus* status) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls WorkTimes::Fill.
  void FillTimes(v1::WatchRunReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls WorkTimes::FillTimeLine.
  void FillTimeLine(WorkTimes::Cursor* cursor, v1::WatchRunReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What is to be done once the lock is released, in this order.
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

  absl::Status OnFrame(StepConnection* connection, const StepFrame& frame, bool* waits) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool NextReply(StepConnection* connection, StepReplyFrame* reply) override ABSL_LOCKS_EXCLUDED(mutex_);
  void CountSent(const StepConnection& connection, int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(StepConnection* connection) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Does the work of OnFrame, except for the outbox.
  absl::Status Handle(StepConnection* connection, const StepFrame& frame, bool* waits, Outbox* outbox)
      ABSL_LOCKS_EXCLUDED(mutex_, admission_mutex_);
  // Its parts. What the frame is summed into; null when it is only checked.
  absl::Status Begin(StepConnection* connection, const StepFrame& frame, StepMachine::FrameStart* start,
                     std::shared_ptr<StepSums>* sums) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Sum(StepConnection* connection, const StepFrame& frame, bool begins, StepSums* sums,
                   StepMachine::FrameResult* result) const;
  // Notes, for options_.arrivals, what the worker computes the token with that is sent to it now.
  void NoteToken(const v1::Token& token, int64_t values_step, StepConnection* connection) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns InvalidArgument if the sums have something that is not finite, which was contributed to `block` of `step`.
  // The error counts steps as logs do: it names the global step after the update.
  absl::Status CheckFinite(const std::string& worker, int64_t step, const SlotBlock& block, const StepSums& sums) const;
  // The staged contribution is whole. If it counts, adds it to the step's `sums`.
  void AdmitStaged(StepConnection* connection, StepMachine::FrameResult* result, std::shared_ptr<StepSums>* sums)
      ABSL_LOCKS_EXCLUDED(mutex_) ABSL_EXCLUSIVE_LOCKS_REQUIRED(admission_mutex_);
  absl::Status Finish(StepConnection* connection, const StepFrame& frame, const absl::Status& summed,
                      const std::shared_ptr<StepSums>& sums, StepMachine::FrameResult* result, Outbox* outbox)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `why` is the reason if the frame ends the run.
  absl::Status End(StepConnection* connection, const StepFrame& frame, const absl::Status& summed,
                   const StepMachine::FrameResult& result, const std::string& why, Outbox* outbox)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status CheckHeldLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What was contributed to the step in progress is thrown away.
  void DropSums() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  VariableSnapshot TakeSnapshotLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Commit(absl::Time now, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The step that was committed last only counts: a few of many are logged.
  void NoteSkipped(const StepSums::NonFinite& why, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the streams that keep more old versions of the values alive than may be, also those that wait for their end
  // to be read. Nothing is lost: contributions to those steps no longer count.
  void CloseExcessPins(absl::Time now, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const StepEffects& effects, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same, and the commit.
  void TakeAndCommit(const StepEffects& effects, absl::Time now, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the connection out of the books, unless it was already.
  void Remove(uint64_t session, const absl::Status& why, bool at_once, Outbox* outbox)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes those that can be sent next values that became final; `frame_session` is one that may have become so itself.
  void WakeForEarlyValues(uint64_t frame_session, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeIfEarlyValues(uint64_t session, Outbox* outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CarryOut(Outbox* outbox) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const bool stages_;  // the policy has contributions staged

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
  // The step in progress; null when the run is over or was stopped.
  std::shared_ptr<StepSums> sums_ ABSL_GUARDED_BY(mutex_);
  // Segments of the next values that workers were woken for.
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
