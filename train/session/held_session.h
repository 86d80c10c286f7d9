#ifndef LOCKSTEP_TRAIN_SESSION_HELD_SESSION_H_
#define LOCKSTEP_TRAIN_SESSION_HELD_SESSION_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/train/session/step_gate.h"

namespace lockstep::train {

// A session before its first step. On the chief no step begins until somebody lets it through the gate; on a worker
// nothing is computed before Run.
struct HeldSession {
  std::unique_ptr<Session> session;
  // The chief's, a part of the session; null on a worker.
  StepGate* gate = nullptr;
  // The chief's: where it listens, with the port that it has taken; a session that follows this one in the process is
  // to listen there as well, for its workers. Empty without a socket.
  std::string listening;

  // From now on steps begin as they can.
  void Release() const;
};

// Opens a session: OpenHeldSession, or a substitute of a test's.
using SessionOpener = std::function<absl::StatusOr<HeldSession>(const SessionOptions&)>;

// OpenSession, held. Errors: those of OpenSession.
absl::StatusOr<HeldSession> OpenHeldSession(const SessionOptions& options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_HELD_SESSION_H_
