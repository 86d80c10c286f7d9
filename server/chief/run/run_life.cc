#include "lockstep/server/chief/run/run_life.h"

#include <utility>

namespace lockstep {

bool RunLife::Move(v1::RunStatus::Phase from, v1::RunStatus::Phase to) {
  if (phase_ != from) return false;
  phase_ = to;
  return true;
}

bool RunLife::BeginStart() { return Move(v1::RunStatus::WAITING_FOR_MODEL, v1::RunStatus::RESTORING); }

bool RunLife::AbandonStart() { return Move(v1::RunStatus::RESTORING, v1::RunStatus::WAITING_FOR_MODEL); }

bool RunLife::Train() { return Move(v1::RunStatus::RESTORING, v1::RunStatus::TRAINING); }

bool RunLife::Finish() {
  return Move(v1::RunStatus::TRAINING, v1::RunStatus::FINISHED) ||
         Move(v1::RunStatus::RESTORING, v1::RunStatus::FINISHED);
}

bool RunLife::Fail(absl::Status why) {
  if (!Move(v1::RunStatus::TRAINING, v1::RunStatus::FAILED)) return false;
  failure_ = std::move(why);
  return true;
}

absl::Status RunLife::CheckOpen() const {
  if (declaring_) return absl::UnavailableError("the chief is initializing the model");
  if (stop_requested_) return absl::UnavailableError("the chief is stopping");
  return absl::OkStatus();
}

absl::Status RunLife::BeginDeclaration() {
  absl::Status open = CheckOpen();
  if (open.ok()) declaring_ = true;
  return open;
}

absl::Status RunLife::CheckNotStopping() const {
  if (!abandoned_.ok()) return abandoned_;
  return stop_requested_ ? absl::CancelledError("the chief is stopping") : absl::OkStatus();
}

bool RunLife::RequestStop(absl::Time deadline) {
  if (stop_requested_) return false;
  stop_requested_ = true;
  stop_deadline_ = deadline;
  return true;
}

void RunLife::Abandon(absl::Status why) {
  stop_requested_ = true;
  if (abandoned_.ok()) abandoned_ = std::move(why);
}

}  // namespace lockstep
