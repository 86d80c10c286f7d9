#ifndef LOCKSTEP_SERVER_CHIEF_TRAINING_H_
#define LOCKSTEP_SERVER_CHIEF_TRAINING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
#include "lockstep/server/chief/reads/variable_reads.h"
#include "lockstep/server/chief/run/run_history.h"
#include "lockstep/server/chief/run/run_summaries.h"
#include "lockstep/server/ps/slot_metrics.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/ps/versions/prefault.h"
#include "lockstep/server/sync/arrivals/arrival_log.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/status.pb.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// A run whose model is known: its variables, the steps that change them, its checkpoints and its events. After Create,
// it serves workers through sync(). The destructor waits for the disk. Thread-safe.
class Training : private RunEvents {
 public:
  struct Options {
    const ChiefOptions* chief = nullptr;
    // The run's current settings: the chief's options plus the recorded changes.
    config::v1::RunSpec config;
    RunHistory* history = nullptr;
    // Receives all events except kRoom, and every committed step.
    RunEvents* events = nullptr;
    // If true, Create returns only when a checkpoint holds the state, because nothing else can make it again.
    bool awaits_first_save = false;
  };

  // If no checkpoint holds the initial state, immediately begins to save it. Errors: those of the file system, in which
  // case nothing has changed.
  static absl::StatusOr<std::unique_ptr<Training>> Create(Options options, RestoredVariables restored);
  ~Training() override;

  SyncReplicas* sync() { return sync_.get(); }
  const SyncReplicas* sync() const { return sync_.get(); }
  // Serves reads of the run's variables.
  VariableReads* reads() { return reads_.get(); }
  const ParameterLayout& layout() const { return store_->layout(); }
  bool finished() const { return sync_->step() >= sync_->total_steps(); }
  // The log of the run's updates. Null unless the run is followed or its variables were set.
  CommitLog* log() { return log_.get(); }
  // Adds a summary to the event file, if there is one. Never blocks on files. Errors: as for RunSummaries::Add.
  absl::Status AddSummary(v1::Summary summary, int64_t step) { return summaries_.Add(std::move(summary), step); }
  // Sets the number of examples per slot for later steps. Call it between two steps.
  void SetBatchSize(int64_t batch_size);
  // Returns the prefix of the newest checkpoint; empty if there is none.
  std::string checkpoint() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the checkpoint, the metrics and the gradient norm to the status that SyncReplicas::FillStatus fills in.
  void FillStatus(v1::RunStatus* status) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills in the bounds of memory, the period of checkpoints, and what SyncReplicas::FillTimes fills in.
  void FillWatch(v1::WatchRunReply* reply) const;

  // Begins a save if one is due by time. Never blocks on files.
  void SaveIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins an immediate save of the last committed step, unless it is already saved. Never blocks on files. Returns
  // false if the disk must store an earlier step first; the caller should retry.
  bool BeginSave() ABSL_LOCKS_EXCLUDED(mutex_);
  // Saves the last committed step immediately and blocks until that is done. Returns OK if it is already saved, or
  // without a logdir. If the run's first checkpoint is still pending, that one is written before. Errors: those of the
  // file system; DeadlineExceeded if LimitSaves ends the wait.
  absl::Status Save() ABSL_LOCKS_EXCLUDED(mutex_);
  // Like Save, for a run that failed because a contribution was not finite. If a value of the last step is not finite
  // either, reports that and saves nothing.
  absl::Status SaveIfFinite() ABSL_LOCKS_EXCLUDED(mutex_);
  // Saves the last committed step again after its variables or settings were changed.
  absl::Status SaveAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the deadline of all current and future waits for the disk.
  void LimitSaves(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops the steps and saves the last one, with retries after temporary errors until the deadline of LimitSaves.
  // Returns Cancelled, with the location, if it is saved; otherwise the error.
  absl::Status Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until the run is held, and returns the global step. Call it after SyncReplicas::HoldForChange if the run is
  // followed. Errors: as for CommitLog::Await.
  absl::StatusOr<int64_t> AwaitHeld();
  // Returns the status of a change between two steps, with Cancelled replaced by the reason for the stop.
  absl::Status Explain(absl::Status status);
  // Stops the steps and ends the followers' log with the reason. Saves nothing.
  void Abandon(const absl::Status& why);
  // Ends a run that cannot continue, and reports kFailed.
  void Fail(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes pending events once the run has ended. Ends the event file unless the run is followed.
  void EndEvents();
  // Ends the event file of a followed run once its program adds no more summaries.
  void EndFollowersEvents();

 private:
  Training(Options options, RestoredVariables restored, std::unique_ptr<EventQueue> events);

  void CreateReads(absl::Status memory);
  // Creates this incarnation's file for the order in which contributions arrive, if that order is recorded now or was
  // recorded before.
  absl::Status CreateArrivalLog();
  // Removes that file, so that another attempt of this incarnation does not find it.
  void RemoveArrivalLog();
  absl::Status CreateSaver(absl::optional<std::string> restored);
  SyncReplicas::Options SyncOptions();
  void OnEvent(const RunEvent& event) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCommitted(const CommittedStep& committed) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Keep the metrics and the gradient norm of a step for the status, unless those of a later step are known.
  void KeepMetrics(int64_t step, const std::vector<StepMetric>& metrics) ABSL_LOCKS_EXCLUDED(mutex_);
  void KeepNorm(int64_t step, double norm) ABSL_LOCKS_EXCLUDED(mutex_);
  // If workers read input streams, adds the number of contributions with each result to the step's summaries.
  void AddContributionCounts(int64_t step, bool last);
  void OnSnapshot(VariableSnapshot snapshot) override { SaveSoon(std::move(snapshot)); }
  // Waits until the summaries contain every committed step.
  void AwaitCommitsTold();
  void EndLog(absl::Status why);
  absl::Status AwaitEndOfLog();
  // Returns true if checkpoint.every_steps is set. Every multiple is then saved: steps wait if the disk has not stored
  // an earlier one.
  bool saves_all() const { return options_.config.checkpoint().every_steps() > 0; }
  void SaveSoon(VariableSnapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces a checkpoint of the same step.
  absl::Status SaveOver(VariableSnapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteSnapshot(const VariableSnapshot& snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Saves unless the disk is still storing an earlier snapshot, which is new enough.
  void SaveIfRoom();
  // Records that the run ends at this step, so that no later incarnation trains past it or waits for workers to reach
  // it again.
  absl::Status RecordEnd(int64_t step);
  absl::Status SaveUntilDeadline() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  // RestoredVariables::memory_needed and memory_limit.
  const uint64_t memory_needed_, memory_limit_;
  mutable Mutex mutex_;
  SaveSchedule schedule_ ABSL_GUARDED_BY(mutex_);
  // The latest step that has metrics, and its metrics.
  int64_t metrics_step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<StepMetric> metrics_ ABSL_GUARDED_BY(mutex_);
  // The latest step whose gradient norm was computed, and the norm.
  int64_t norm_step_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::optional<double> gradient_norm_ ABSL_GUARDED_BY(mutex_);

  // The following members are in order of dependency: events from sync_ reach checkpoint_writer_, and events from
  // checkpoint_writer_ reach the summaries.
  const std::unique_ptr<CommitLog> log_;
  const std::unique_ptr<VariableStore> store_;
  RunSummaries summaries_;
  std::unique_ptr<ArrivalLog> arrivals_;                 // null unless the order of arrival is recorded
  std::unique_ptr<CheckpointWriter> checkpoint_writer_;  // null without a logdir
  std::unique_ptr<SyncReplicas> sync_;
  std::unique_ptr<VariableReads> reads_;
  // Pre-faults the memory that steps need while checkpoints are written. Null without a logdir.
  std::unique_ptr<Prefault> prefault_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_TRAINING_H_
