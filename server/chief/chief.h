#ifndef LOCKSTEP_SERVER_CHIEF_CHIEF_H_
#define LOCKSTEP_SERVER_CHIEF_CHIEF_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/server/chief/chief_options.h"
#include "lockstep/server/chief/journal/idle_log.h"
#include "lockstep/server/chief/journal/run_journal.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/chief/run_changes.h"
#include "lockstep/server/chief/run_ends.h"
#include "lockstep/server/chief/run_state.h"
#include "lockstep/server/chief/sessions.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/server/sync/workers/work_times.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// Owns one run: the model's variables, the global step, the workers' sessions, checkpoints and events. Create restores
// the run from the logdir; the chief then serves until ends()->Wait returns. First start, resume and recovery share one
// code path. Thread-safe.
class Chief {
 public:
  using Options = ChiefOptions;

  // Errors: FailedPrecondition if another chief holds the logdir, if the logdir's run has a different configuration or
  // began where another run should have continued (WrongLogdir), or if the floating-point mode of the calling thread,
  // which new threads inherit, would change results (CheckFloatingPointMode); DataLoss if no checkpoint in the logdir
  // can be read; InvalidArgument for an invalid model or optimizer.
  static absl::StatusOr<std::unique_ptr<Chief>> Create(Options options);

  // Handles the calls of workers.
  Sessions* sessions() { return &sessions_; }
  RunEnds* ends() { return &ends_; }
  RunChanges* changes() { return &changes_; }

  v1::RunStatus GetStatus() const;
  // The position of one WatchRun watcher.
  struct WatchCursor {
    RunJournal::Cursor journal;
    WorkTimes::Cursor times;
  };
  // Fills the parts of a WatchRunReply that are the same for all watchers.
  void FillWatch(v1::WatchRunReply* reply) const;
  // Adds what the watcher has not received yet, including contributions and commits if `times` is set. Advances the
  // cursor.
  void FillNews(bool times, WatchCursor* cursor, v1::WatchRunReply* reply) const;
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request);

  // Requests an immediate save of the last committed step; the run continues. Requests that arrive before the save
  // begins are combined; a request that arrives before training starts is deferred until it does. Never blocks on
  // files. May be called from any thread.
  void RequestSave() ABSL_LOCKS_EXCLUDED(run_.mutex);
  // Blocks until the model is known and its variables have values. Errors: the run's failure; Cancelled after
  // RequestStop.
  absl::Status AwaitModel();
  // Null before the model is known; afterwards it never changes.
  Training* training() const { return run_.FindTraining(); }
  // Runs one round of the housekeeping thread.
  void Housekeep() ABSL_LOCKS_EXCLUDED(run_.mutex);
  int64_t generation() const { return run_.history.generation(); }

 private:
  Chief(Options options, std::unique_ptr<RunDirectory> directory);

  absl::Status Start();
  void StartBeats();
  // Continues the history in the logdir. If that fails, logs the reason.
  void OpenJournal();
  // Begins a save if RequestSave was called.
  void SaveIfRequested(Training* training) ABSL_LOCKS_EXCLUDED(run_.mutex);

  RunState run_;
  Sessions sessions_;
  RunEnds ends_;
  RunChanges changes_;
  IdleLog idle_log_ ABSL_GUARDED_BY(run_.mutex);
  bool save_requested_ ABSL_GUARDED_BY(run_.mutex) = false;
  std::unique_ptr<PeriodicTask> beats_;
  std::unique_ptr<PeriodicTask> housekeeping_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHIEF_H_
