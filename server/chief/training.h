#ifndef LOCKSTEP_SERVER_CHIEF_TRAINING_H_
#define LOCKSTEP_SERVER_CHIEF_TRAINING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/checkpoint/checkpoint_writer.h"
#include "lockstep/server/chief/checkpoint/restore.h"
#include "lockstep/server/chief/checkpoint/save_schedule.h"
#include "lockstep/server/chief/chief_options.h"
#include "lockstep/server/chief/run/run_history.h"
#include "lockstep/server/chief/run/run_summaries.h"
#include "lockstep/server/chief/variable_reads.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/ps/versions/prefault.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// A run whose model is known: its variables, the steps that change them, its checkpoints and its events. Life: Create,
// serve workers through sync(); destroying it waits for the disk. Thread-safe.
class Training : private RunEvents {
 public:
  struct Options {
    const ChiefOptions* chief = nullptr;
    // The run's settings: those of the chief's options with the changes on record.
    config::v1::RunSpec config;
    RunHistory* history = nullptr;
    // Receives what happens, but for kRoom.
    RunEvents* events = nullptr;
  };

  // Saves at once what no checkpoint holds. Errors: those of the file system, after which nothing has changed.
  static absl::StatusOr<std::unique_ptr<Training>> Create(Options options, RestoredVariables restored);
  ~Training() override;

  SyncReplicas* sync() { return sync_.get(); }
  const SyncReplicas* sync() const { return sync_.get(); }
  // Those that read variables.
  VariableReads* reads() { return reads_.get(); }
  const ParameterLayout& layout() const { return store_->layout(); }
  bool finished() const { return sync_->step() >= sync_->total_steps(); }
  // The run's updates; null unless it is followed or variables were set.
  CommitLog* log() { return log_.get(); }
  // Writes into the event file; without one it does nothing. Never blocks on files. Errors: those of RunSummaries::Add.
  absl::Status AddSummary(v1::Summary summary, int64_t step) { return summaries_.Add(std::move(summary), step); }
  // Between two steps: examples of each (step, slot) that follows.
  void SetBatchSize(int64_t batch_size);
  // The prefix of the newest checkpoint; empty when there is none.
  std::string checkpoint() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the checkpoint, and what SyncReplicas::FillStatus does.
  void FillStatus(v1::RunStatus* status) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins a save when the clock asks for one. Never blocks on files.
  void SaveIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins a save of the last committed step, to be written at once, unless it is saved already. Never blocks on files.
  // False when the disk has yet to take an earlier step that must be written first: try again.
  bool BeginSave() ABSL_LOCKS_EXCLUDED(mutex_);
  // Saves the last committed step at once and blocks until that is done; OK when it is saved already, or without a
  // logdir. A run's first checkpoint, which may still wait, is written before it. Errors: those of the files;
  // DeadlineExceeded when LimitSaves ends the wait.
  absl::Status Save() ABSL_LOCKS_EXCLUDED(mutex_);
  // Does the same for a run that failed by a contribution that is not finite, unless a value of the last step is not
  // finite, either: then it reports that and saves nothing.
  absl::Status SaveIfFinite() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same where variables were set since the last save.
  absl::Status SaveAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on nobody waits for the disk after `deadline`, those that wait already included.
  void LimitSaves(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the steps and saves the last one, again and again when the error may pass, until the deadline of LimitSaves.
  // Cancelled when it is saved, and says where; else the error.
  absl::Status Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Where the run is followed, after SyncReplicas::HoldForChange: blocks until the run is held, and returns the global
  // step. Errors: those of CommitLog::Await.
  absl::StatusOr<int64_t> AwaitHeld();
  // Returns the status of a change between two steps, with the reason for the stop in place of Cancelled.
  absl::Status Explain(absl::Status status);
  // Stops the steps and ends the followers' log with the reason. Saves nothing.
  void Abandon(const absl::Status& why);
  // Ends the steps of a run that cannot continue, and reports kFailed.
  void Fail(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);
  // The run has ended: its events are written, and, unless it is followed, that no more come.
  void EndEvents();
  // The follower has no summary to add any more, either.
  void EndFollowersEvents();

 private:
  Training(Options options, RestoredVariables restored, std::unique_ptr<EventQueue> events);

  void CreateReads(absl::Status memory);
  absl::Status CreateSaver(absl::optional<std::string> restored);
  SyncReplicas::Options SyncOptions();
  void OnEvent(const RunEvent& event) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCommitted(const CommittedStep& committed) override;
  void OnSnapshot(VariableSnapshot snapshot) override { SaveSoon(std::move(snapshot)); }
  // The summaries have what there is to say of every step that is committed.
  void AwaitCommitsTold();
  void EndLog(absl::Status why);
  absl::Status AwaitEndOfLog();
  // With checkpoint.every_steps every multiple is written: steps wait where the disk has not taken an earlier one.
  bool saves_all() const { return options_.config.checkpoint().every_steps() > 0; }
  void SaveSoon(VariableSnapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // In place of a checkpoint of the same step.
  absl::Status SaveOver(VariableSnapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteSnapshot(const VariableSnapshot& snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing, when the disk has not taken an earlier one: that is new enough.
  void SaveIfRoom();
  // Records that the run ends at this step: no later life goes beyond it, or waits for workers to reach it again.
  absl::Status RecordEnd(int64_t step);
  absl::Status SaveUntilDeadline() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  SaveSchedule schedule_ ABSL_GUARDED_BY(mutex_);

  // In order of dependence: events of sync_ reach checkpoint_writer_, those of checkpoint_writer_ the summaries.
  const std::unique_ptr<CommitLog> log_;
  const std::unique_ptr<VariableStore> store_;
  RunSummaries summaries_;
  std::unique_ptr<CheckpointWriter> checkpoint_writer_;  // null without a logdir
  std::unique_ptr<SyncReplicas> sync_;
  std::unique_ptr<VariableReads> reads_;
  // Of the memory that steps need while checkpoints are written; null without a logdir.
  std::unique_ptr<Prefault> prefault_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_TRAINING_H_
