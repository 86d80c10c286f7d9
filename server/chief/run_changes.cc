#include "lockstep/server/chief/run_changes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/server/chief/run/program_change.h"
#include "lockstep/server/optimizer/optimizer_groups.h"

namespace lockstep {
namespace {

// The first kLoggedChanges changes are logged, and then every hundredth.
constexpr int64_t kLoggedChanges = 10;

v1::GradientSettings GradientSettingsOf(const config::v1::RunSpec& spec, int64_t changes) {
  v1::GradientSettings settings;
  *settings.mutable_multipliers() = spec.optimizer().multipliers();
  if (spec.optimizer().has_clip()) *settings.mutable_clip() = spec.optimizer().clip();
  settings.set_batch_size(spec.input().batch_size());
  settings.set_changes(changes);
  return settings;
}

}  // namespace

absl::StatusOr<Training*> RunChanges::FollowedTraining(absl::string_view what) const {
  Training* const training = run_->FindTraining();
  if (training != nullptr && training->log() != nullptr) return training;
  return absl::FailedPreconditionError(
      absl::StrCat("only a program that follows the run can ", what, ", once it has a model"));
}

absl::Status RunChanges::BetweenSteps(Training* training, absl::FunctionRef<absl::Status(int64_t step)> change) {
  training->sync()->HoldForChange();
  const absl::StatusOr<int64_t> step = training->AwaitHeld();
  absl::Status status = step.status();
  if (status.ok()) {
    // Otherwise a concurrent assignment could save some of the values, and an end could be recorded between the record
    // and the values.
    MutexLock one_at_a_time(&run_->change_mutex);
    status = change(*step);
  }
  training->sync()->ReleaseAfterChange();
  return status;
}

absl::Status RunChanges::SaveOrFail(Training* training, absl::string_view what) {
  const absl::Status saved = training->SaveAgain();
  if (saved.ok()) return saved;
  // Without the checkpoint, a recovery would start from an older one, which precedes the change.
  absl::Status failure(saved.code(), absl::StrCat(what, " could not be written: ", saved.message()));
  training->Fail(failure);
  return failure;
}

absl::Status RunChanges::Assign(absl::Span<const AssignedValue> values, ChangedBy by) {
  ASSIGN_OR_RETURN(Training* const training, FollowedTraining("set variables"));
  return BetweenSteps(training, [&](int64_t step) {
    run_->change_mutex.AssertHeld();
    return training->Explain(AssignAt(step, values, by, training));
  });
}

absl::Status RunChanges::AssignAt(int64_t step, absl::Span<const AssignedValue> values, ChangedBy by,
                                  Training* training) {
  RETURN_IF_ERROR(training->sync()->CheckAssign(values));
  v1::RunRecord::Assignment assignment;
  assignment.set_step(step);
  for (const AssignedValue& value : values) assignment.add_variable(value.key);
  // A checkpoint stores the number of assignments that it includes, so the next incarnation drops an entry whose values
  // are not in any checkpoint.
  const auto add = [assignment](v1::RunRecord* record) { AddAssignment(assignment, record); };
  if (by == ChangedBy::kHook) {
    run_->history.Note(add);
    const absl::Status assigned = training->sync()->Assign(values, by);
    if (!assigned.ok()) run_->history.Note([](v1::RunRecord* record) { record->mutable_assignment()->RemoveLast(); });
    return assigned;
  }
  RETURN_IF_ERROR(run_->history.CheckOwned());
  RETURN_IF_ERROR(run_->history.Update(add));
  RETURN_IF_ERROR(training->sync()->Assign(values, by));
  return SaveOrFail(training, absl::StrCat("variables were set at step ", step, ", and the checkpoint with them"));
}

absl::StatusOr<RunChanges::Plan> RunChanges::PlanOf(const SettingsChange& change) const {
  Plan plan;
  plan.before = run_->settings.spec();
  ASSIGN_OR_RETURN(config::v1::RunSpec after, WithSettings(*plan.before, change, run_->history.examples()));
  plan.difference = DifferenceOf(*plan.before, after);
  if (plan.difference.replaced.has_optimizer()) {
    RETURN_IF_ERROR(CheckSameState(plan.before->optimizer(), after.optimizer()));
  }
  plan.after = std::make_shared<const config::v1::RunSpec>(std::move(after));
  return plan;
}

absl::Status RunChanges::ChangeSettings(const SettingsChange& change, ChangedBy by) {
  ASSIGN_OR_RETURN(Training* const training, FollowedTraining("change settings"));
  ASSIGN_OR_RETURN(Plan plan, PlanOf(change));
  return BetweenSteps(training, [&](int64_t step) -> absl::Status {
    run_->change_mutex.AssertHeld();
    // Another thread may have changed the settings in the meantime.
    if (plan.before != run_->settings.spec()) {
      ASSIGN_OR_RETURN(plan, PlanOf(change));
    }
    return ChangeAt(step, plan, by, training);
  });
}

void RunChanges::NoteProgramChange(const std::string& what) {
  const int64_t step = run_->history.record().finished_step();
  LOG(INFO) << "from step " << step << " on the run's program " << what;
  run_->history.Note([&](v1::RunRecord* record) { AddProgramChange(step, what, record); });
}

absl::Status RunChanges::BeginChange() {
  MutexLock lock(&run_->mutex);
  while (run_->life.declaring() && !run_->life.stop_requested()) run_->changed.Wait(&run_->mutex);
  // Returns the reason for a stop, such as a lost logdir. BeginDeclaration would return only Unavailable.
  RETURN_IF_ERROR(run_->life.CheckNotStopping());
  return run_->life.BeginDeclaration();
}

absl::Status RunChanges::ChangeAt(int64_t step, const Plan& plan, ChangedBy by, Training* training) {
  // A repeated request changes nothing.
  if (plan.difference.empty()) {
    // The first request may have failed to save the change and stopped the run.
    RETURN_IF_ERROR(training->Explain(training->sync()->CheckHeld()));
    training->log()->CountChange(by, absl::nullopt);
    if (by == ChangedBy::kHook || !by_hook_) return absl::OkStatus();
    // A hook made the change, and it may not be in a checkpoint yet.
    RETURN_IF_ERROR(run_->history.CheckOwned());
    return training->SaveAgain();
  }
  if (!plan.difference.for_workers) return training->Explain(Make(step, plan, by, training));
  RETURN_IF_ERROR(BeginChange());
  const absl::Status status = training->Explain(Make(step, plan, by, training));
  MutexLock lock(&run_->mutex);
  run_->life.EndDeclaration();
  run_->changed.SignalAll();
  return status;
}

absl::Status RunChanges::Make(int64_t step, const Plan& plan, ChangedBy by, Training* training) {
  // The run may have been stopped in the meantime, and a change that is not applied must not be recorded.
  RETURN_IF_ERROR(training->sync()->CheckHeld());
  RETURN_IF_ERROR(Record(step, plan, by, training));
  absl::optional<v1::GradientSettings> for_workers;
  if (plan.difference.for_workers) {
    const int64_t changes = run_->history.changes();
    for_workers = GradientSettingsOf(*plan.after, changes);
    MutexLock lock(&run_->mutex);
    run_->ForgetDeclarations();
    run_->settings.Set(plan.after, changes);
  } else {
    run_->settings.Set(plan.after, run_->settings.changes());
  }
  RETURN_IF_ERROR(training->sync()->ChangeSettings(SettingsOf(*plan.after), std::move(for_workers), by));
  if (plan.difference.replaced.has_batch_size()) training->SetBatchSize(plan.after->input().batch_size());
  NoteChange(step);
  by_hook_ = by == ChangedBy::kHook;
  if (by == ChangedBy::kHook) return absl::OkStatus();
  return SaveOrFail(training, absl::StrCat("settings were changed at step ", step, ", and the checkpoint of it"));
}

void RunChanges::NoteChange(int64_t step) {
  ++changes_;
  if (changes_ > kLoggedChanges && changes_ % 100 != 0) return;
  RunEvent changed{RunEvent::kChanged, step};
  changed.count = changes_;
  run_->OnEvent(changed);
}

absl::Status RunChanges::Record(int64_t step, const Plan& plan, ChangedBy by, Training* training) {
  const auto add = [step, difference = plan.difference, after = plan.after](v1::RunRecord* record) {
    AddChange(step, difference, *after, record);
  };
  if (by == ChangedBy::kHook) {
    run_->history.Note(add);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(run_->history.CheckOwned());
  const absl::Status recorded = run_->history.Update(add);
  // The next incarnation may find the change in the record, so no step may be computed without it.
  if (!recorded.ok() && run_->history.in_doubt()) {
    training->Fail(absl::Status(recorded.code(), absl::StrCat("whether it is on record that settings change at step ",
                                                              step, " is not known: ", recorded.message())));
  }
  return recorded;
}

}  // namespace lockstep
