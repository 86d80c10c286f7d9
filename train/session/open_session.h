#ifndef LOCKSTEP_TRAIN_SESSION_OPEN_SESSION_H_
#define LOCKSTEP_TRAIN_SESSION_OPEN_SESSION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

// A session without hooks: ChiefSession or WorkerSession. On the chief the first step may begin at once. Errors: those
// of the two; InvalidArgument, before anything starts, for options that contradict each other.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(SessionOptions options);

// InvalidArgument names the option that is wrong for what the process is.
absl::Status CheckSessionOptions(const SessionOptions& options);

// Allows a stop of the process to take as long as the threads beside such a session, which have `grace`, or the save of
// the chief, which begins immediately.
void AllowStop(const SessionOptions& options, absl::Duration grace);

// InvalidArgument names the option.
absl::Status CheckNotNegative(absl::string_view option, int64_t value);
absl::Status CheckNotNegative(absl::string_view option, absl::Duration value);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_OPEN_SESSION_H_
