#ifndef LOCKSTEP_TRAIN_SESSION_HELD_SESSION_H_
#define LOCKSTEP_TRAIN_SESSION_HELD_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/train/session/step_gate.h"

namespace lockstep::train {

// A session before its first step. On the chief, no step begins before a call to the gate's AllowThrough; on a worker,
// nothing is computed before Run.
struct HeldSession {
  std::unique_ptr<Session> session;
  // The chief's gate, a part of the session. Null on a worker.
  StepGate* gate = nullptr;
  // The chief's address, with the port that it has bound. The next session in this process should listen on the same
  // address, so that its workers find it. Empty if there is no socket.
  std::string listening;

  // Allows steps to begin without a limit.
  void Release() const;
};

// Opens a session like OpenSession, but holds it. Errors: those of OpenSession.
absl::StatusOr<HeldSession> OpenHeldSession(const SessionOptions& options);

// Calls options.open or, if that is null, OpenHeldSession.
absl::StatusOr<HeldSession> CallOpener(const SessionOptions& options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_HELD_SESSION_H_
