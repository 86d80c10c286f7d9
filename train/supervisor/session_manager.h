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

// Returns the names of what is not ready yet; none if everything is ready. FailedPrecondition with "uninitialized" in
// its message also means "not ready"; any other error is a failure.
using ReadyFunction = std::function<absl::StatusOr<std::vector<std::string>>(Session&)>;
// Creates the local state of the process, which the program keeps outside the run's variables. Called for every
// session, and on a worker for every attempt, so it must tolerate repeated calls. FailedPrecondition with
// "uninitialized" in its message means "not ready", as for a ReadyFunction.
using LocalInitFunction = std::function<absl::Status(Session&)>;

// Returns the names of variables without a value.
absl::StatusOr<std::vector<std::string>> UninitializedVariables(Session& session);

// Opens sessions with SessionOptions::open and returns them when they are ready: restored or initialized, with the
// local state of the process. All times are measured with SessionOptions::clock; SessionOptions::stop ends each wait
// with Cancelled. Keeps no state between calls. Thread-safe if the functions are. A program may derive its own class.
class SessionManager {
 public:
  struct Options {
    // If null, the session is always ready.
    ReadyFunction ready = UninitializedVariables;
    // Called before local_init; must be null if local_init is. If null, the session is always ready for local_init.
    ReadyFunction ready_for_local_init;
    // If null, there is no local state.
    LocalInitFunction local_init;
    // Maximum duration of local_init. A call that takes longer is not interrupted, but leads to DeadlineExceeded after
    // it returns.
    absl::Duration local_init_timeout = absl::InfiniteDuration();
    // The time between two checks while waiting.
    absl::Duration recovery_wait = absl::Seconds(30);
  };

  struct PrepareOptions {
    // If true, waits up to max_wait for a checkpoint in the logdir. The last check is at most `recovery_wait` late.
    bool wait_for_checkpoint = false;
    absl::Duration max_wait = absl::Seconds(7200);
    // If true, variables that are not restored get their initial values from the seed or a warm start, then from
    // SessionOptions::init_fn. If false, the seed and a warm start do not count: without a checkpoint, init_fn must set
    // every variable.
    bool initialize = true;
  };

  // Creates a manager. Returns InvalidArgument naming a wrong option.
  static absl::StatusOr<std::unique_ptr<SessionManager>> Create(Options options);
  virtual ~SessionManager() = default;

  // Returns the chief's session, restored from the logdir or otherwise initialized, after local_init. Errors: those of
  // opening the session; those of the ready functions and local_init, except that their exceptions become Internal and
  // their OutOfRange becomes FailedPrecondition unless the run is over; FailedPrecondition naming what is not ready, or
  // the variables that nothing initializes; DeadlineExceeded if no checkpoint appeared in time.
  virtual absl::StatusOr<HeldSession> PrepareSession(const SessionOptions& options, const PrepareOptions& prepare);

  struct Recovered {
    // Absent if there is nothing to restore.
    absl::optional<HeldSession> session;
    // True if the session is restored, local_init was called, and the session is ready.
    bool initialized = false;
  };
  // Returns the chief's session if it can be restored. A session that is not ready is not an error. Errors: those of
  // opening the session, of the ready functions and of local_init.
  virtual absl::StatusOr<Recovered> RecoverSession(const SessionOptions& options, const PrepareOptions& prepare);

  // Returns a worker's session as soon as the chief has one and this process is ready. Opens a new session for each
  // attempt. Errors: those of opening it, except Unavailable; those of the ready functions and local_init; OutOfRange
  // if the run is over; DeadlineExceeded, up to one `recovery_wait` early, naming what was not ready.
  virtual absl::StatusOr<HeldSession> WaitForSession(const SessionOptions& options,
                                                     absl::Duration max_wait = absl::InfiniteDuration());

 protected:
  explicit SessionManager(Options options) : options_(std::move(options)) {}

 private:
  // Returns a description of what is not ready; nullopt if the session is ready. Returns OutOfRange only if the run is
  // over.
  absl::StatusOr<absl::optional<std::string>> MakeReady(Session& session, Clock* clock) const;
  absl::StatusOr<absl::optional<std::string>> CallFunctions(Session& session, Clock* clock) const;
  absl::Status CallLocalInit(Session& session, Clock* clock) const;
  absl::StatusOr<absl::optional<std::string>> Attempt(const SessionOptions& options, HeldSession* held) const;
  // Returns true if the logdir has a checkpoint. If wait_for_checkpoint is set, waits for one.
  absl::StatusOr<bool> AwaitCheckpoint(const SessionOptions& options, const PrepareOptions& prepare) const;

  const Options options_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_SESSION_MANAGER_H_
