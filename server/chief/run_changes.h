#ifndef LOCKSTEP_SERVER_CHIEF_RUN_CHANGES_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_CHANGES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/run/run_settings.h"
#include "lockstep/server/chief/run_state.h"
#include "lockstep/server/chief/training.h"

namespace lockstep {

// The changes that a program or a hook makes to the variables and settings of a followed run between two steps.
// Thread-safe.
class RunChanges {
 public:
  // `run` must outlive this.
  explicit RunChanges(RunState* run) : run_(run) {}

  // Sets variables or optimizer state as soon as the step in progress is committed. Before the next tokens are issued,
  // records the assignment and writes a checkpoint of that step with the new values. A hook's assignment does not wait
  // for the disk: the next checkpoint records it, and if the run restarts without that checkpoint, the hook repeats it.
  // Requires a followed run. Errors: those of VariableStore::Assign, the file system and CommitLog::Await.
  absl::Status Assign(absl::Span<const AssignedValue> values, ChangedBy by = ChangedBy::kProgram)
      ABSL_LOCKS_EXCLUDED(run_->change_mutex, run_->mutex);
  // Changes settings of the run as soon as the step in progress is committed. The change is recorded on disk in the
  // same way as an assignment (Assign). Workers receive the settings that they compute with in their next token. A
  // program that restarts the run with its original configuration continues with the changed settings. Requires a
  // followed run. Errors: InvalidArgument, naming the setting, if it is invalid or cannot be changed; those of the file
  // system and CommitLog::Await.
  absl::Status ChangeSettings(const SettingsChange& change, ChangedBy by = ChangedBy::kProgram)
      ABSL_LOCKS_EXCLUDED(run_->change_mutex, run_->mutex);

  // Returns true if the run continues after having finished, so that the program may differ from the one that finished
  // it.
  bool MayChangeProgram() const { return run_->history.may_change_program(); }
  // Records such a difference, for display only. Must be called before the first step. The record is on disk before the
  // next checkpoint.
  void NoteProgramChange(const std::string& what);

 private:
  // Returns the training if a program follows the run. Otherwise returns FailedPrecondition, which says that only such
  // a program can do `what`.
  absl::StatusOr<Training*> FollowedTraining(absl::string_view what) const ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Holds the run between two steps, one caller at a time, while `change` makes a change at that step with
  // run_->change_mutex held.
  absl::Status BetweenSteps(Training* training, absl::FunctionRef<absl::Status(int64_t step)> change)
      ABSL_LOCKS_EXCLUDED(run_->change_mutex, run_->mutex);
  // Saves the step again with a change. If that fails, the run fails. `what` is the beginning of the error, up to
  // "could not be written".
  static absl::Status SaveOrFail(Training* training, absl::string_view what);
  absl::Status AssignAt(int64_t step, absl::Span<const AssignedValue> values, ChangedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Waits until no worker is making a declaration, and blocks further declarations until EndDeclaration.
  absl::Status BeginChange() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // A change that has been checked.
  struct Plan {
    std::shared_ptr<const config::v1::RunSpec> before;
    std::shared_ptr<const config::v1::RunSpec> after;
    SettingsDifference difference;
  };
  // Plans the change from the current settings. Returns InvalidArgument, naming the setting, if it is invalid or cannot
  // be changed.
  absl::StatusOr<Plan> PlanOf(const SettingsChange& change) const;
  absl::Status ChangeAt(int64_t step, const Plan& plan, ChangedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Records and applies the change.
  absl::Status Make(int64_t step, const Plan& plan, ChangedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Adds the change to the record and, unless a hook makes the change, writes the record to disk.
  absl::Status Record(int64_t step, const Plan& plan, ChangedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Logs the change. After the first few, logs only every hundredth.
  void NoteChange(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);

  RunState* const run_;
  // True if a hook made the latest change of settings.
  bool by_hook_ ABSL_GUARDED_BY(run_->change_mutex) = false;
  // The number of settings changes in this incarnation.
  int64_t changes_ ABSL_GUARDED_BY(run_->change_mutex) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_CHANGES_H_
