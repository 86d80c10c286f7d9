#include "lockstep/server/chief/run/run_history.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/chief/run/run_identity.h"
#include "lockstep/server/chief/run/run_settings.h"

namespace lockstep {

RunHistory::RunHistory(std::unique_ptr<RunDirectory> directory, absl::Time now, RunEvents* events)
    : directory_(std::move(directory)),
      events_(events),
      generation_(directory_ == nullptr ? absl::ToUnixMicros(now) : directory_->generation()) {}

absl::Status RunHistory::CheckOwned() const {
  return directory_ == nullptr ? absl::OkStatus() : Report(directory_->CheckOwned());
}

absl::Status RunHistory::Beat() const { return directory_ == nullptr ? absl::OkStatus() : Report(directory_->Beat()); }

absl::Status RunHistory::Report(absl::Status status) const {
  if (absl::IsFailedPrecondition(status) && events_ != nullptr) {
    events_->OnEvent({RunEvent::kLogdirLost, 0, "", "", status});
  }
  return status;
}

absl::StatusOr<bool> RunHistory::Read(uint64_t drawn_run_id, absl::string_view checkpoint_base) {
  absl::optional<v1::RunRecord> record;
  std::string run_id = RunIdText(drawn_run_id);
  bool has_checkpoint = false, at_good_end = false;
  if (directory_ != nullptr) {
    ASSIGN_OR_RETURN(record, directory_->ReadRecord());
    if (!record || record->has_initial_values()) {
      ASSIGN_OR_RETURN(has_checkpoint, directory_->HasCheckpoint(checkpoint_base));
    }
    if (record && record->has_initial_values() && !has_checkpoint) {
      run_id = record->run_id();
      record.reset();
    }
  }
  if (record && record->has_finished_step()) {
    ASSIGN_OR_RETURN(at_good_end, directory_->IsNewest(record->finished_step()));
  }
  MutexLock lock(&mutex_);
  may_change_program_ = at_good_end;
  known_ = record.has_value();
  found_nothing_ = !known_ && !has_checkpoint;
  if (record) record_ = *std::move(record);
  if (record_.run_id().empty()) record_.set_run_id(std::move(run_id));
  return known_;
}

std::string RunHistory::run_id() const {
  MutexLock lock(&mutex_);
  return record_.run_id();
}

v1::RunRecord::InitialValues RunHistory::initial_values() const {
  MutexLock lock(&mutex_);
  return record_.initial_values();
}

bool RunHistory::found_nothing() const {
  MutexLock lock(&mutex_);
  return found_nothing_;
}

absl::optional<int64_t> RunHistory::good_end() const {
  MutexLock lock(&mutex_);
  return record_.has_finished_step() ? absl::make_optional(record_.finished_step()) : absl::nullopt;
}

absl::Status RunHistory::OnRestored(int64_t step) {
  MutexLock lock(&mutex_);
  const int64_t end = record_.finished_step();
  if (!may_change_program_ || step == end) return absl::OkStatus();
  may_change_program_ = false;
  if (absl::c_none_of(record_.program_change(), [end](const auto& change) { return change.step() == end; })) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the program differs since the good end at step ", end, ", but that checkpoint is damaged and step ", step,
      " was restored: repair the checkpoint, or compute up to step ", end, " with the program of before"));
}

bool RunHistory::may_change_program() const {
  MutexLock lock(&mutex_);
  return may_change_program_;
}

v1::RunRecord RunHistory::record() const {
  MutexLock lock(&mutex_);
  return record_;
}

int64_t RunHistory::changes() const {
  MutexLock lock(&mutex_);
  return NumChanges(record_);
}

absl::optional<int64_t> RunHistory::examples() const {
  MutexLock lock(&mutex_);
  return record_.has_data() ? absl::make_optional(record_.data().examples()) : absl::nullopt;
}

RunTarget RunHistory::target() const {
  MutexLock lock(&mutex_);
  return target_;
}

void RunHistory::ResolveTarget(const config::v1::TrainingConfig& config, int64_t restored) {
  MutexLock lock(&mutex_);
  target_ = RunTarget::Resolve(config, known_ ? &record_ : nullptr, restored);
}

bool RunHistory::Continue(int64_t restored, const v1::SessionState& state, bool changes_settings) {
  MutexLock lock(&mutex_);
  // This incarnation has not finished the run yet.
  record_.clear_finished();
  if (record_.finished_step() > restored) record_.clear_finished_step();
  KeepAssignments(state.assignments(), &record_);
  const bool dropped = DropLaterChanges(restored, state, &record_);
  // Changes that were recorded after the restored checkpoint take effect at its step.
  for (v1::RunRecord::Change& change : *record_.mutable_change()) change.set_step(std::min(change.step(), restored));
  if (!changes_settings) return dropped;
  v1::RunRecord::Change* const change = record_.add_change();
  change->set_step(restored);
  *change->mutable_before() = record_.config();
  return dropped;
}

v1::RunRecord RunHistory::BeginWriting() {
  MutexLock lock(&mutex_);
  while (writing_) written_.Wait(&mutex_);
  writing_ = true;
  notes_.clear();
  return record_;
}

bool RunHistory::in_doubt() const {
  MutexLock lock(&mutex_);
  return in_doubt_;
}

absl::Status RunHistory::Write(v1::RunRecord record, RunTarget target, Doubtful doubtful) {
  target.FillRecord(&record);
  bool replaced = false;
  const absl::Status status = directory_ == nullptr ? absl::OkStatus() : directory_->WriteRecord(record, &replaced);
  // If a successor has fenced this chief, CheckOwned reports that, which ends the run.
  if (absl::IsFailedPrecondition(status)) CheckOwned().IgnoreError();
  MutexLock lock(&mutex_);
  writing_ = false;
  written_.SignalAll();
  // If this write failed before it replaced the record, the doubt about an earlier write remains.
  in_doubt_ = !status.ok() && (replaced || in_doubt_);
  if (!status.ok() && (!replaced || doubtful == Doubtful::kDropped)) return status;
  known_ = true;
  record_ = std::move(record);
  target_ = std::move(target);
  for (const auto& note : notes_) note(&record_);
  unwritten_ = !notes_.empty();
  return status;
}

absl::Status RunHistory::Update(const std::function<void(v1::RunRecord*)>& change) {
  v1::RunRecord record = BeginWriting();
  change(&record);
  return Write(std::move(record), target(), Doubtful::kDropped);
}

void RunHistory::Note(const std::function<void(v1::RunRecord*)>& change) {
  MutexLock lock(&mutex_);
  change(&record_);
  unwritten_ = true;
  if (writing_) notes_.push_back(change);
}

absl::Status RunHistory::Flush() {
  {
    MutexLock lock(&mutex_);
    if (!unwritten_) return absl::OkStatus();
  }
  return Update([](v1::RunRecord*) {});
}

absl::Status RunHistory::NoteOtherRun(const v1::RunRecord::OtherRun& other) {
  v1::RunRecord record = BeginWriting();
  *record.mutable_other_run() = other;
  {
    MutexLock lock(&mutex_);
    *record_.mutable_other_run() = other;
    if (!known_) {
      writing_ = false;
      written_.SignalAll();
      return absl::OkStatus();
    }
  }
  return Write(std::move(record), target(), Doubtful::kKept);
}

absl::Status RunHistory::EndAt(int64_t step, const std::string& reason) {
  v1::RunRecord record = BeginWriting();
  RunTarget target = this->target();
  target.EndAt(step, reason);
  absl::Status status = Write(std::move(record), std::move(target), Doubtful::kKept);
  if (status.ok() || !in_doubt() || this->target().total_steps() > step) return status;
  return absl::UnknownError(
      absl::StrCat("it is unknown whether the end at step ", step, " is recorded: ", status.message()));
}

}  // namespace lockstep
