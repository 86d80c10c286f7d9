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

// Opens a session without hooks: a ChiefSession or a WorkerSession. On the chief, the first step may begin immediately.
// Errors: those of the two classes; InvalidArgument, before anything starts, for options that contradict each other.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(SessionOptions options);

// Checks the options for this process's role. Returns InvalidArgument naming a wrong option.
absl::Status CheckSessionOptions(const SessionOptions& options);

// Sets how long a stop of the process may take: `grace`, for the threads outside the session, or the time in which the
// chief saves, whichever is longer. The chief begins to save immediately.
void AllowStop(const SessionOptions& options, absl::Duration grace);

// Returns InvalidArgument that names the option and what is wrong with it.
absl::Status WrongOption(absl::string_view option, absl::string_view why);

// Returns InvalidArgument, naming the option, if `value` is negative.
absl::Status CheckNotNegative(absl::string_view option, int64_t value);
absl::Status CheckNotNegative(absl::string_view option, absl::Duration value);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_OPEN_SESSION_H_
