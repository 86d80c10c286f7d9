#ifndef LOCKSTEP_SERVER_CHIEF_RUN_CHANGES_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_CHANGES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/run/run_settings.h"
#include "lockstep/server/chief/run_state.h"
#include "lockstep/server/chief/training.h"

namespace lockstep {

// Changes a run between two steps: values of variables, and settings. Only if the run is followed. Thread-safe.
class RunChanges {
 public:
  // `run` must outlive this.
  explicit RunChanges(RunState* run) : run_(run) {}

  // Sets variables or optimizer state as soon as the step in progress is committed. The assignment is recorded, and a
  // checkpoint of that step with the values is written, before the next tokens are issued. A hook's assignment waits
  // for no file: the next checkpoint records it, and the hook repeats it if there is none. Only if the run is followed.
  // Errors: those of VariableStore::Assign, of the file system, and of CommitLog::Await.
  absl::Status Assign(absl::Span<const AssignedValue> values, ChangedBy by = ChangedBy::kProgram)
      ABSL_LOCKS_EXCLUDED(run_->change_mutex, run_->mutex);
  // Changes settings of the run as soon as the step in progress is committed. Recorded on disk like the values of
  // Assign. Workers receive the settings that they compute with in their next token. A program that restarts the run
  // with its original configuration continues with the changed settings. Only if the run is followed. Errors:
  // InvalidArgument names the setting that is wrong or cannot be changed; those of the file system, and of
  // CommitLog::Await.
  absl::Status ChangeSettings(const SettingsChange& change, ChangedBy by = ChangedBy::kProgram)
      ABSL_LOCKS_EXCLUDED(run_->change_mutex, run_->mutex);

  // Returns true if the run continues from a good end: the program may differ from the one that came there.
  bool MayChangeProgram() const { return run_->history.may_change_program(); }
  // Before the first step: records such a difference, for display. The disk has it before the next checkpoint.
  void NoteProgramChange(const std::string& what);

 private:
  absl::Status AssignAt(int64_t step, absl::Span<const AssignedValue> values, ChangedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Waits until no worker is declaring what the run lacks. None can until EndDeclaration.
  absl::Status BeginChange() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // A change that was checked.
  struct Plan {
    std::shared_ptr<const config::v1::RunSpec> before;
    std::shared_ptr<const config::v1::RunSpec> after;
    SettingsDifference difference;
  };
  // Plans the change of the current settings. Errors: InvalidArgument names the setting that is wrong or cannot be
  // changed.
  absl::StatusOr<Plan> PlanOf(const SettingsChange& change) const;
  absl::Status ChangeAt(int64_t step, const Plan& plan, ChangedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Records the change, and applies it.
  absl::Status Make(int64_t step, const Plan& plan, ChangedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Adds the change to the record, on disk unless a hook makes it.
  absl::Status Record(int64_t step, const Plan& plan, ChangedBy by, Training* training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Logs only some of the changes.
  void NoteChange(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->change_mutex) ABSL_LOCKS_EXCLUDED(run_->mutex);

  RunState* const run_;
  // True if a hook made the newest change of settings.
  bool by_hook_ ABSL_GUARDED_BY(run_->change_mutex) = false;
  // The number of changes of settings in this incarnation.
  int64_t changes_ ABSL_GUARDED_BY(run_->change_mutex) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_CHANGES_H_
