#ifndef LOCKSTEP_SERVER_CHIEF_CHIEF_H_
#define LOCKSTEP_SERVER_CHIEF_CHIEF_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/chief_options.h"
#include "lockstep/server/chief/run/run_contract.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/chief/run/run_history.h"
#include "lockstep/server/chief/run/run_life.h"
#include "lockstep/server/chief/run/run_settings.h"
#include "lockstep/server/chief/session_table.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// Owns one run: the model's variables, the global step, the workers' sessions, checkpoints and events.
// Life: Create (restores what the logdir has), serve until Wait returns, Stop. First start, resume and
// recovery are the same path. Thread-safe.
class Chief : private RunEvents {
 public:
  using Options = ChiefOptions;

  // Errors: FailedPrecondition when another chief holds the logdir, the logdir's run has another configuration, or the
  // calling thread, and so those that the chief makes, would compute other bits (CheckFloatingPointMode);
  // DataLoss when no checkpoint of the logdir can be read; InvalidArgument for a wrong model or optimizer.
  static absl::StatusOr<std::unique_ptr<Chief>> Create(Options options);

  // The calls of proto/lockstep/v1/chief.proto.
  v1::GetRunSpecReply GetRunSpec() const;
  // May take long the first time (initial values, restore); concurrent callers get Unavailable meanwhile.
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  v1::RunStatus GetStatus() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Wait carries it out. FailedPrecondition for a session whose worker has not computed the canary.
  absl::StatusOr<v1::RequestEndReply> RequestEnd(const v1::RequestEndRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the session one that was just used. Errors: Aborted for an unknown session or an old generation.
  absl::Status CheckSession(uint64_t session_id, int64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether ValuePath::kShared is possible.
  bool shares_memory() const { return shared_memory_ != nullptr; }
  // The Step stream of a session; see SyncReplicas::Connect. Errors: Aborted for an unknown session or an old
  // generation; FailedPrecondition when its worker has not computed the canary.
  absl::StatusOr<std::shared_ptr<StepConnection>> OpenStep(uint64_t session_id, int64_t generation,
                                                           ValuePath value_path, std::shared_ptr<StepListener> listener)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until the last step is applied and saved and the workers have been notified (OK), the run failed (its
  // error), or RequestStop was called: then no further step is committed, and the last one is saved at once (Cancelled;
  // its message says where). Workers that do not say goodbye are waited for two seconds, and cluster.linger_seconds are
  // stayed for those that start after the end; RequestStop ends that. Errors of saving: those of the files, or
  // DeadlineExceeded when the disk has not taken the step within checkpoint.stop_seconds of RequestStop. After that one
  // end the process: destroying the chief would wait for the disk. FailedPrecondition when another chief was found to
  // have taken over the logdir: nothing is saved there any more.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes Wait return; callable from any thread. Only the first call counts.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Saves the last committed step at once and blocks until that is done; OK when it is saved already, or without a
  // logdir. Errors as those of Wait.
  absl::Status Save() ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks for a save of the last committed step, at once; the run continues. Requests that come before the save begins
  // are one, and one that comes before the run trains waits until it does. Never blocks on files; callable from any
  // thread.
  void RequestSave() ABSL_LOCKS_EXCLUDED(mutex_);

  // For a program that follows the run.
  // Blocks until the model is known and its variables have values. Errors: the failure of the run; Cancelled after
  // RequestStop.
  absl::Status AwaitModel() ABSL_LOCKS_EXCLUDED(mutex_);
  // After AwaitModel; the same for good.
  Training* training() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The program has no summary to add any more: the event file ends, unless the logdir is another chief's by now.
  void EndFollowersEvents() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the run well as soon as the step in progress is committed, or no worker is at it: Wait returns OK after the
  // save. The step is in the run's record before it counts, so that no later life goes beyond. Errors:
  // FailedPrecondition before the model is known; those of the file system, and the run goes on; Unknown when the disk
  // has not said whether it has the record, and then this life ends the run, and another may go on with it, unless the
  // record can be written before the last step is saved. Of `reason` 1024 bytes are recorded, as UTF-8.
  // `last_state`, which may be null, is the followers' state from when the record has the end, or may have it, before
  // the last step is saved.
  absl::Status End(const std::string& reason, const v1::SessionState* last_state = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets variables or optimizer state as soon as the step in progress is committed. It is recorded, and a checkpoint of
  // that step with the values is written, before the next tokens go out; workers open new sessions. Only where the run
  // is followed. Errors: those of VariableStore::Assign, of the file system, and of CommitLog::Await.
  absl::Status Assign(absl::Span<const AssignedValue> values, AssignedBy by = AssignedBy::kProgram)
      ABSL_LOCKS_EXCLUDED(change_mutex_, mutex_);
  // Settings of the run are these as soon as the step in progress is committed. It is recorded, and a checkpoint of
  // that step is written, before the next tokens go out; workers open new sessions. A program that starts the run again
  // as it did before continues with them. Only where the run is followed. Errors: InvalidArgument names the setting
  // that is wrong or cannot be changed; those of the file system, and of CommitLog::Await.
  absl::Status ChangeSettings(const SettingsChange& change) ABSL_LOCKS_EXCLUDED(change_mutex_, mutex_);

  // One round of what the housekeeping thread does.
  void Housekeep() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t generation() const { return history_.generation(); }

 private:
  Chief(Options options, std::unique_ptr<RunDirectory> directory);

  absl::Status Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes training_ for a model, from the newest checkpoint or from the seed, and writes the record. After an error
  // another worker may declare another model.
  absl::Status StartModel(std::shared_ptr<const RunContract> contract, bool changes_settings = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `contract` is replaced where the workers' part of it holds no more.
  absl::StatusOr<std::unique_ptr<Training>> CreateTraining(std::shared_ptr<const RunContract>* contract,
                                                           bool changes_settings) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the caller computes with is the run's, or becomes so when it is the first. Compares without a lock: a model
  // may be large.
  absl::Status Agree(const v1::OpenSessionRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // What is not known of the run becomes that of the request.
  absl::Status Declare(const RunContract* known, const v1::OpenSessionRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller's session is not wanted.
  void Refuse(const v1::OpenSessionRequest& request, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteRecord(const RunContract& contract) ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller's session, a new one if need be. Unavailable when there are too many.
  // Aborted when settings were changed since there were `changes` changes.
  absl::StatusOr<uint64_t> FindOrAddSession(const v1::OpenSessionRequest& request, int64_t changes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes room for a session; false when all have a stream.
  bool RemoveOldestSession() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireSessions(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AssignAt(int64_t step, absl::Span<const AssignedValue> values, AssignedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no worker declares what the run lacks; none can before EndDeclaration.
  absl::Status BeginChange() ABSL_LOCKS_EXCLUDED(mutex_);
  // The present settings with the change.
  absl::StatusOr<config::v1::RunSpec> Changed(const SettingsChange& change) const;
  absl::Status ChangeAt(int64_t step, const SettingsChange& change, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(change_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEvent(const RunEvent& event) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls RunHistory::CheckOwned before a worker's declaration is recorded. Returns Unavailable if the logdir is lost:
  // the worker did nothing wrong, and will find the chief that has the logdir.
  absl::Status CheckOwnedForWorker() ABSL_LOCKS_EXCLUDED(mutex_);
  // The run is over: saves, notifies the workers and lingers.
  absl::Status FinishRun(Training* training) ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitGoodbyes(const SyncReplicas& replicas) ABSL_LOCKS_EXCLUDED(mutex_);
  // The run has ended well, and all know.
  void NoteFinished() ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets the server answer for cluster.linger_seconds more; false when there are none or RequestStop ends them.
  bool Linger() ABSL_LOCKS_EXCLUDED(mutex_);
  // Carries out RequestSave.
  void SaveIfRequested(Training* training) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether it is time to say that the run waits for workers.
  bool TakeIdleLog(absl::Time now, bool idle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  RunSettings settings_;
  RunHistory history_;
  // For workers to find out whether they can map the chief's memory; null when none is shared.
  const std::unique_ptr<SharedMemory> shared_memory_;

  // Before mutex_. The record has assignments and changes in the order in which they are made.
  Mutex change_mutex_;
  mutable Mutex mutex_;
  CondVar changed_;
  RunLife life_ ABSL_GUARDED_BY(mutex_);
  SessionTable sessions_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_idle_log_ ABSL_GUARDED_BY(mutex_);
  bool save_requested_ ABSL_GUARDED_BY(mutex_) = false;
  // Null before the model is known, as training_ is.
  std::shared_ptr<const RunContract> contract_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Training> training_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PeriodicTask> housekeeping_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHIEF_H_
