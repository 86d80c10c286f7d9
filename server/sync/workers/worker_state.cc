#include "lockstep/server/sync/workers/worker_state.h"

#include "absl/strings/str_cat.h"

namespace lockstep {

std::string StepToken::ToString() const {
  if (!batch) return DescribeBlock(step, block);
  return absl::StrCat("batch ", batch->position, " of stream ", batch->stream, " for step ", step);
}

void WorkerState::OnHeard(absl::Time now) {
  heard_ = now;
  silent_ = false;
}

bool WorkerState::Move(Phase from, Phase to) {
  if (phase_ != from) return false;
  phase_ = to;
  return true;
}

absl::Status WorkerState::Refuse(absl::string_view what) const {
  return absl::FailedPreconditionError(absl::StrCat(what, " of ", name_, ", which has left the run"));
}

absl::Status WorkerState::OnAsk() {
  switch (phase_) {
    case Phase::kConnected:
    case Phase::kComputing:
      phase_ = Phase::kWaiting;
      return absl::OkStatus();
    case Phase::kWaiting:
    case Phase::kAssigned:
      return absl::InvalidArgumentError("a token is already pending");
    case Phase::kPushing:
      return absl::InvalidArgumentError("the previous contribution was not finished");
    case Phase::kLeft:
      break;
  }
  return Refuse("a request for a token");
}

absl::Status WorkerState::OnContribution(const StepToken& token) {
  if (phase_ == Phase::kPushing) return absl::OkStatus();
  if (phase_ == Phase::kLeft) return Refuse("a contribution");
  if (phase_ != Phase::kComputing || !(token == *token_)) {
    return absl::FailedPreconditionError(absl::StrCat("a contribution to ", token.ToString(),
                                                      " without a token for it; the session's last token is ",
                                                      phase_ == Phase::kComputing ? token_->ToString() : "none"));
  }
  phase_ = Phase::kPushing;
  contributed_step_ = token.step;
  any_new_ = false;
  return absl::OkStatus();
}

absl::Status WorkerState::OnContributed(v1::ContributionResult result) {
  if (!Move(Phase::kPushing, Phase::kWaiting)) {
    return absl::FailedPreconditionError("the end of a contribution that has not begun");
  }
  result_ = result;
  return absl::OkStatus();
}

bool WorkerState::OnAssigned(const StepToken& token, absl::Time now) {
  if (!Move(Phase::kWaiting, Phase::kAssigned)) return false;
  token_ = token;
  token_time_ = now;
  return true;
}

bool WorkerState::OnTokenSent(int64_t values_step) {
  if (!Move(Phase::kAssigned, Phase::kComputing)) return false;
  token_->values_step = values_step;
  return true;
}

bool WorkerState::OnVoided() { return Move(Phase::kAssigned, Phase::kWaiting); }

bool WorkerState::OnLeaseEnded() {
  const bool moved = Move(Phase::kAssigned, Phase::kWaiting);
  if (!moved && phase_ != Phase::kComputing && phase_ != Phase::kPushing) return false;
  silent_ = true;
  return true;
}

bool WorkerState::OnFinishSent() { return Move(Phase::kWaiting, Phase::kLeft) || Move(Phase::kAssigned, Phase::kLeft); }

}  // namespace lockstep
