#include "lockstep/server/chief/run_history.h"

#include <algorithm>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/chief/run_settings.h"

namespace lockstep {

RunHistory::RunHistory(std::unique_ptr<RunDirectory> directory, absl::Time now)
    : directory_(std::move(directory)),
      generation_(directory_ == nullptr ? absl::ToUnixMicros(now) : directory_->generation()) {}

absl::StatusOr<bool> RunHistory::Read() {
  if (directory_ == nullptr) return false;
  ASSIGN_OR_RETURN(auto record, directory_->ReadRecord());
  if (!record) return false;
  MutexLock lock(&mutex_);
  known_ = true;
  record_ = *std::move(record);
  return true;
}

v1::RunRecord RunHistory::record() const {
  MutexLock lock(&mutex_);
  return record_;
}

RunTarget RunHistory::target() const {
  MutexLock lock(&mutex_);
  return target_;
}

void RunHistory::ResolveTarget(const config::v1::TrainingConfig& config, int64_t restored) {
  MutexLock lock(&mutex_);
  target_ = RunTarget::Resolve(config, known_ ? &record_ : nullptr, restored);
}

bool RunHistory::Continue(int64_t restored, int64_t assignments, bool changes_settings) {
  MutexLock lock(&mutex_);
  while (record_.assignment_size() > assignments) record_.mutable_assignment()->RemoveLast();
  const bool dropped = DropLaterChanges(restored, &record_);
  // Settings of a change that is later than all checkpoints that are left hold from here on.
  for (v1::RunRecord::Change& change : *record_.mutable_change()) change.set_step(std::min(change.step(), restored));
  if (!changes_settings) return dropped;
  v1::RunRecord::Change* const change = record_.add_change();
  change->set_step(restored);
  *change->mutable_before() = record_.config();
  return dropped;
}

void RunHistory::BeginWriting() {
  MutexLock lock(&mutex_);
  while (writing_) written_.Wait(&mutex_);
  writing_ = true;
}

absl::Status RunHistory::Write(v1::RunRecord record, RunTarget target) {
  target.FillRecord(&record);
  const absl::Status status = directory_ == nullptr ? absl::OkStatus() : directory_->WriteRecord(record);
  MutexLock lock(&mutex_);
  writing_ = false;
  written_.SignalAll();
  if (!status.ok()) return status;
  known_ = true;
  record_ = std::move(record);
  target_ = std::move(target);
  return absl::OkStatus();
}

absl::Status RunHistory::Update(const std::function<void(v1::RunRecord*)>& change) {
  BeginWriting();
  v1::RunRecord record = this->record();
  change(&record);
  return Write(std::move(record), target());
}

absl::Status RunHistory::EndAt(int64_t step, const std::string& reason) {
  BeginWriting();
  RunTarget target = this->target();
  target.EndAt(step, reason);
  return Write(record(), std::move(target));
}

}  // namespace lockstep
