#include "lockstep/train/session/held_session.h"

#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/sync/machine/step_machine.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/session/worker_session.h"

namespace lockstep::train {

void HeldSession::Release() const {
  if (gate != nullptr) gate->AllowThrough(StepMachine::kNoLimit);
}

absl::StatusOr<HeldSession> OpenHeldSession(const SessionOptions& options) {
  RETURN_IF_ERROR(CheckSessionOptions(options));
  HeldSession held;
  if (options.is_chief) {
    ASSIGN_OR_RETURN(auto session, ChiefSession::Open(options));
    held.gate = session.get();
    held.listening = session->listening();
    held.session = std::move(session);
  } else {
    ASSIGN_OR_RETURN(held.session, WorkerSession::Open(options));
  }
  return held;
}

absl::StatusOr<HeldSession> CallOpener(const SessionOptions& options) {
  return options.open ? options.open(options) : OpenHeldSession(options);
}

}  // namespace lockstep::train
