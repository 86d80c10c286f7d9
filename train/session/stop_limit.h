#ifndef LOCKSTEP_TRAIN_SESSION_STOP_LIMIT_H_
#define LOCKSTEP_TRAIN_SESSION_STOP_LIMIT_H_

#include <algorithm>

#include "absl/time/time.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

// A process with such a session whose threads have `grace` for a stop may take so long: the chief saves at once, while
// they end.
inline void AllowStop(const SessionOptions& session, absl::Duration grace) {
  if (session.stop == nullptr) return;
  const absl::Duration save = absl::Seconds(session.op.spec.checkpoint().stop_seconds());
  session.stop->Allow(std::max(grace, save) + kEndingLimit);
}

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_STOP_LIMIT_H_
