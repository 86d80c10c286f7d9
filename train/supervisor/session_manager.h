#ifndef LOCKSTEP_TRAIN_SUPERVISOR_SESSION_MANAGER_H_
#define LOCKSTEP_TRAIN_SUPERVISOR_SESSION_MANAGER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/session/held_session.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

// Says what is not ready yet, by name; ready when that is empty. FailedPrecondition with "uninitialized" in its message
// says "not ready" as well; any other error is one.
using ReadyFunction = std::function<absl::StatusOr<std::vector<std::string>>(Session&)>;
// Makes the local state of the process: whatever of its own the program keeps beside the run's variables. Called for
// every session, and on a worker for every attempt: it must not mind being called again. FailedPrecondition with
// "uninitialized" in its message says "not ready", as for a ReadyFunction.
using LocalInitFunction = std::function<absl::Status(Session&)>;

// The names of variables without a value.
absl::StatusOr<std::vector<std::string>> UninitializedVariables(Session& session);

// Opens sessions that are ready: restored or initialized, with the local state of the process. All times are of
// SessionOptions::clock; its `stop` ends each wait with Cancelled. Nothing is kept between two calls. Thread-safe if
// the functions are. A program may derive one of its own.
class SessionManager {
 public:
  struct Options {
    // Null: always ready.
    ReadyFunction ready = UninitializedVariables;
    // Asked before local_init, which must be there then. Null: always ready.
    ReadyFunction ready_for_local_init;
    // Null: there is no local state.
    LocalInitFunction local_init;
    // A local_init that took longer is DeadlineExceeded when it returns; nothing interrupts it.
    absl::Duration local_init_timeout = absl::InfiniteDuration();
    // Between two looks at what is waited for.
    absl::Duration recovery_wait = absl::Seconds(30);
    SessionOpener open = OpenHeldSession;
  };

  struct PrepareOptions {
    // Looks for a checkpoint in the logdir until there is one; the last look is at most `recovery_wait` late.
    bool wait_for_checkpoint = false;
    absl::Duration max_wait = absl::Seconds(7200);
    // What is not restored gets its initial values: from the seed or a warm start, then from SessionOptions::init_fn.
    // If false, the seed and a warm start do not count: without a checkpoint init_fn must set every variable.
    bool initialize = true;
  };

  // InvalidArgument names the option that is wrong.
  static absl::StatusOr<std::unique_ptr<SessionManager>> Create(Options options);
  virtual ~SessionManager() = default;

  // The chief's session: restored from the logdir, else initialized; then local_init. Errors: those of opening and of
  // the functions, whose exceptions are Internal and whose OutOfRange is FailedPrecondition unless the run is over;
  // FailedPrecondition names what is not ready, or the variables that nothing initializes; DeadlineExceeded when a
  // checkpoint was waited for in vain.
  virtual absl::StatusOr<HeldSession> PrepareSession(const SessionOptions& options, const PrepareOptions& prepare);

  struct Recovered {
    // Null when there is nothing to restore.
    absl::optional<HeldSession> session;
    // It is restored, local_init was called, and it is ready.
    bool initialized = false;
  };
  // The chief's session if it can be restored. What is not ready is no error. Errors: those of opening and of the
  // functions.
  virtual absl::StatusOr<Recovered> RecoverSession(const SessionOptions& options, const PrepareOptions& prepare);

  // A worker's session, as soon as the chief has one and this process is ready. Opens another one for each attempt.
  // Errors: those of opening, but for Unavailable, and of the functions; OutOfRange when the run is over;
  // DeadlineExceeded, up to one `recovery_wait` early, with what was not ready.
  virtual absl::StatusOr<HeldSession> WaitForSession(const SessionOptions& options,
                                                     absl::Duration max_wait = absl::InfiniteDuration());

 protected:
  explicit SessionManager(Options options) : options_(std::move(options)) {}

 private:
  // nullopt: ready. Else what is not. OutOfRange only if the run is over.
  absl::StatusOr<absl::optional<std::string>> MakeReady(Session& session, Clock* clock) const;
  absl::StatusOr<absl::optional<std::string>> CallFunctions(Session& session, Clock* clock) const;
  absl::Status CallLocalInit(Session& session, Clock* clock) const;
  absl::StatusOr<absl::optional<std::string>> Attempt(const SessionOptions& options, HeldSession* held) const;
  // Whether the logdir has a checkpoint.
  absl::StatusOr<bool> AwaitCheckpoint(const SessionOptions& options, const PrepareOptions& prepare) const;

  const Options options_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_SESSION_MANAGER_H_
