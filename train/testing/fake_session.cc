#include "lockstep/train/testing/fake_session.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep::train {

FakeSession::FakeSession() : FakeSession(Options()) {}

FakeSession::FakeSession(Options options)
    : options_(std::move(options)),
      newest_(options_.step),
      seen_(options_.restored.hook_size() > 0 ? options_.restored.step() : options_.step),
      end_(options_.total_steps),
      state_(options_.restored) {
  if (!options_.gated) limit_ = std::numeric_limits<int64_t>::max();
}

void FakeSession::Commit() {
  while (newest_ < end_ && newest_ <= limit_) {
    ++newest_;
    if (!options_.gated) return;  // Commits only as fast as Run follows.
  }
}

StepResult FakeSession::Update(int64_t step) const {
  StepResult result;
  result.global_step = step;
  result.loss = options_.loss(step);
  result.outcome = v1::CONTRIBUTION_ACCEPTED;
  return result;
}

absl::StatusOr<StepResult> FakeSession::Run(const TrainOp& op) {
  absl::Status error;
  std::swap(error, run_error_);
  RETURN_IF_ERROR(error);
  if (closed_) return absl::CancelledError("the session is closed");
  if (!options_.chief) {
    if (options_.blocks.empty()) return absl::OutOfRangeError("the run is over");
    const StepResult result = options_.blocks.front();
    options_.blocks.pop_front();
    newest_ = std::max(newest_, result.global_step);
    return result;
  }
  if (seen_ == newest_) Commit();
  if (seen_ == newest_ && newest_ >= end_) return absl::OutOfRangeError("the run is over");
  if (seen_ == newest_) {
    return absl::InternalError(absl::StrCat("held at step ", newest_, ": this Run would wait forever"));
  }
  ++seen_;
  return Update(seen_);
}

absl::StatusOr<int64_t> FakeSession::NextStep() {
  if (options_.chief) return seen_;
  if (!options_.blocks.empty()) return options_.blocks.front().global_step - 1;
  // A Run that will fail also has a block.
  if (!run_error_.ok()) return newest_;
  return absl::OutOfRangeError("the run is over");
}

bool FakeSession::ShouldStop() {
  return closed_ || !failure_.ok() || !stop_reason_.empty() || (options_.chief && seen_ >= end_);
}

absl::StatusOr<int64_t> FakeSession::GlobalStep() {
  if (polled_steps_.empty()) return newest_;
  const int64_t step = polled_steps_.front();
  polled_steps_.pop_front();
  return step;
}

absl::StatusOr<ReadResult> FakeSession::Read(absl::Span<const std::string> names) {
  ++reads_;
  absl::Status error;
  std::swap(error, read_error_);
  RETURN_IF_ERROR(error);
  ReadResult result;
  result.global_step = newest_;
  std::vector<std::string> wanted(names.begin(), names.end());
  if (wanted.empty()) wanted = {"w", "v", "global_step"};
  for (const std::string& name : wanted) {
    if (name == "w") {
      result.values.push_back({name, Tensor::FromValues<float>({}, {w()})});
    } else if (name == "v") {
      result.values.push_back({name, Tensor::FromValues<float>({2}, {w(), 2 * w()})});
    } else if (name == "global_step") {
      result.values.push_back({name, Tensor::FromValues<int64_t>({}, {newest_})});
    } else {
      return absl::InvalidArgumentError(absl::StrCat("there is no variable ", name));
    }
  }
  return result;
}

absl::Status FakeSession::Assign(absl::Span<const NamedTensor> values) {
  if (!options_.chief) return absl::FailedPreconditionError("Assign on a worker");
  for (const NamedTensor& value : values) {
    if (value.name != "w") return absl::InvalidArgumentError(absl::StrCat("there is no variable ", value.name));
    assigned_w_ = value.value.flat<float>()[0];
  }
  calls_.push_back(absl::StrCat("assign ", newest_));
  return absl::OkStatus();
}

absl::Status FakeSession::AssignByHook(absl::Span<const NamedTensor> values) {
  state_.set_assignments_by_hooks(state_.assignments_by_hooks() + 1);
  return Assign(values);
}

absl::Status FakeSession::ChangeByHook(const SettingsChange& change) {
  state_.set_changes_by_hooks(state_.changes_by_hooks() + 1);
  return ChangeSettings(change);
}

absl::Status FakeSession::ChangeSettings(const SettingsChange&) {
  if (!options_.chief) return absl::FailedPreconditionError("ChangeSettings on a worker");
  calls_.push_back(absl::StrCat("change ", newest_));
  return absl::OkStatus();
}

absl::StatusOr<std::string> FakeSession::Save() {
  if (!options_.chief) return absl::FailedPreconditionError("Save on a worker");
  calls_.push_back(absl::StrCat("save ", newest_));
  saved_steps_.push_back(newest_);
  return absl::StrCat("/run/model.ckpt-", newest_);
}

absl::Status FakeSession::AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) {
  for (const auto& value : summary.value()) {
    scalars_.push_back({global_step.value_or(newest_), value.tag(), value.simple_value()});
  }
  summaries_.push_back(summary);
  return absl::OkStatus();
}

absl::Status FakeSession::RequestStop(const std::string& reason) {
  calls_.push_back(absl::StrCat("stop ", newest_, ": ", reason));
  if (stop_reason_.empty()) stop_reason_ = reason;
  end_ = std::min(end_, newest_);
  return stop_status_;
}

absl::Status FakeSession::Close() {
  calls_.push_back("close");
  closed_ = true;
  return absl::OkStatus();
}

void FakeSession::AllowThrough(int64_t limit) {
  calls_.push_back(absl::StrCat("allow ", limit));
  limit_ = std::max(limit_, limit);
  if (options_.gated) Commit();
}

void FakeSession::SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) {
  calls_.push_back(absl::StrCat("state ", step));
  if (step != state_.step()) {
    state_.clear_assignments_by_hooks();
    state_.clear_changes_by_hooks();
  }
  state_.set_step(step);
  *state_.mutable_hook() = {hooks.begin(), hooks.end()};
}

absl::Status FakeSession::EndAt(int64_t step, std::vector<v1::SessionState::Hook> hooks, const std::string& reason) {
  SetState(step, std::move(hooks));
  return RequestStop(reason);
}

FakeSession::Options FakeSession::NextLife() const {
  Options next = options_;
  next.step = newest_;
  next.restored = state_;
  next.restored.clear_unseen();
  for (int64_t step = state_.step() + 1; step <= newest_; ++step) {
    v1::StepCommit* commit = next.restored.add_unseen();
    commit->set_step(step);
    commit->set_mean_loss(options_.loss(step));
  }
  return next;
}

std::vector<std::string> FakeSession::acts() const {
  std::vector<std::string> acts;
  for (const std::string& call : calls_) {
    if (!absl::StartsWith(call, "allow ") && !absl::StartsWith(call, "state ")) acts.push_back(call);
  }
  return acts;
}

}  // namespace lockstep::train
