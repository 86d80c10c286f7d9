#include "lockstep/train/supervisor/session_manager.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/session/end/pause.h"
#include "lockstep/train/session/end/reject_out_of_range.h"

namespace lockstep::train {
namespace {

// Returns true if `status` means that a function needed variables that have no value yet.
bool SaysNotReady(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), "uninitialized");
}

// Returns a description of what is not ready; nullopt if the session is ready.
absl::StatusOr<absl::optional<std::string>> Ask(const ReadyFunction& ready, absl::string_view what, Session& session) {
  if (!ready) return absl::optional<std::string>();
  const absl::StatusOr<std::vector<std::string>> missing = CatchExceptions([&] { return ready(session); });
  if (!missing.ok()) {
    const absl::Status& status = missing.status();
    if (SaysNotReady(status)) return absl::make_optional(absl::StrCat("not ", what, ": ", status.message()));
    LOG_IF(WARNING, absl::IsFailedPrecondition(status))
        << "asking whether the session is " << what << ": " << status.message();
    return status;
  }
  if (missing->empty()) return absl::optional<std::string>();
  return absl::make_optional(absl::StrCat("not ", what, ", not initialized: ", absl::StrJoin(*missing, ", ")));
}

// Returns `init_fn` with an added check that it sets all variables.
InitFunction SetsAllVariables(InitFunction init_fn) {
  return [init_fn = std::move(init_fn)](const v1::ModelSpec& model) -> absl::StatusOr<InitialValues> {
    ASSIGN_OR_RETURN(InitialValues initial, init_fn(model));
    std::set<absl::string_view> set;
    for (const NamedTensor& tensor : initial.values) set.insert(tensor.name);
    std::vector<absl::string_view> missing;
    for (const v1::VariableSpec& variable : model.variables()) {
      if (set.count(variable.name()) == 0) missing.push_back(variable.name());
    }
    if (missing.empty()) return initial;
    return absl::FailedPreconditionError(
        absl::StrCat("sets ", set.size(), " of ", model.variables_size(),
                     " variables, and init_op is None; not initialized: ", absl::StrJoin(missing, ", ")));
  };
}

}  // namespace

absl::StatusOr<std::vector<std::string>> UninitializedVariables(Session& session) { return session.Uninitialized(); }

absl::StatusOr<std::unique_ptr<SessionManager>> SessionManager::Create(Options options) {
  if (options.ready_for_local_init && !options.local_init) {
    return absl::InvalidArgumentError("ready_for_local_init: is given without a local_init, which it is asked for");
  }
  if (options.local_init_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "local_init_timeout: ", absl::FormatDuration(options.local_init_timeout), ", must be more than 0"));
  }
  if (options.local_init_timeout < absl::InfiniteDuration() && !options.local_init) {
    return absl::InvalidArgumentError("local_init_timeout: is given without a local_init, which it limits");
  }
  if (options.recovery_wait <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("recovery_wait: ", absl::FormatDuration(options.recovery_wait), ", must be more than 0"));
  }
  return absl::WrapUnique(new SessionManager(std::move(options)));
}

absl::StatusOr<absl::optional<std::string>> SessionManager::MakeReady(Session& session, Clock* clock) const {
  auto missing = CallFunctions(session, clock);
  // If the run is over, OutOfRange is returned unchanged.
  if (missing.ok() || session.ShouldStop()) return missing;
  return RejectOutOfRange(missing.status());
}

absl::Status SessionManager::CallLocalInit(Session& session, Clock* clock) const {
  if (!options_.local_init) return absl::OkStatus();
  const absl::Time start = clock->Now();
  RETURN_IF_ERROR(CatchExceptions([&] { return options_.local_init(session); }));
  const absl::Duration took = clock->Now() - start;
  if (took <= options_.local_init_timeout) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("local_init took ", absl::FormatDuration(took), ", at most ",
                                                  absl::FormatDuration(options_.local_init_timeout), " are allowed"));
}

absl::StatusOr<absl::optional<std::string>> SessionManager::CallFunctions(Session& session, Clock* clock) const {
  ASSIGN_OR_RETURN(auto missing, Ask(options_.ready_for_local_init, "ready for local_init", session));
  if (missing) return missing;
  const absl::Status made = CallLocalInit(session, clock);
  if (SaysNotReady(made)) return absl::make_optional(absl::StrCat("not ready, in local_init: ", made.message()));
  RETURN_IF_ERROR(made);
  return Ask(options_.ready, "ready", session);
}

absl::StatusOr<bool> SessionManager::AwaitCheckpoint(const SessionOptions& options,
                                                     const PrepareOptions& prepare) const {
  if (options.logdir.empty()) return false;
  absl::Duration waited;
  while (true) {
    // Does not check whether the checkpoint's files exist. If they are gone, the chief should report that instead of
    // starting over.
    ASSIGN_OR_RETURN(const auto state, GetCheckpointState(options.logdir, "checkpoint", options.fs));
    if (state) return true;
    if (!prepare.wait_for_checkpoint || waited >= prepare.max_wait) return false;
    LOG(INFO) << "waiting for a checkpoint in " << options.logdir;
    RETURN_IF_ERROR(Pause(options_.recovery_wait, options.clock, options.stop));
    waited += options_.recovery_wait;
  }
}

absl::StatusOr<HeldSession> SessionManager::PrepareSession(const SessionOptions& options,
                                                           const PrepareOptions& prepare) {
  if (!options.is_chief) return absl::InvalidArgumentError("is_chief: is false; a worker calls WaitForSession");
  if (!prepare.initialize || prepare.wait_for_checkpoint) {
    ASSIGN_OR_RETURN(const bool has_checkpoint, AwaitCheckpoint(options, prepare));
    if (!has_checkpoint && prepare.wait_for_checkpoint) {
      return absl::DeadlineExceededError(
          absl::StrCat("no checkpoint in ", options.logdir, " within ", absl::FormatDuration(prepare.max_wait)));
    }
    if (!has_checkpoint && !prepare.initialize && !options.init_fn) {
      return absl::FailedPreconditionError(
          "nothing initializes the model: no checkpoint was found, init_op is None and there is no init_fn");
    }
  }
  SessionOptions opened = options;
  if (!prepare.initialize && options.init_fn) opened.init_fn = SetsAllVariables(options.init_fn);
  ASSIGN_OR_RETURN(HeldSession held, CallOpener(opened));
  ASSIGN_OR_RETURN(const auto missing, MakeReady(*held.session, options.clock));
  if (missing) return absl::FailedPreconditionError(absl::StrCat("the session is ", *missing));
  return held;
}

absl::StatusOr<SessionManager::Recovered> SessionManager::RecoverSession(const SessionOptions& options,
                                                                         const PrepareOptions& prepare) {
  if (!options.is_chief) return absl::InvalidArgumentError("is_chief: is false; a worker calls WaitForSession");
  Recovered recovered;
  ASSIGN_OR_RETURN(const bool has_checkpoint, AwaitCheckpoint(options, prepare));
  if (!has_checkpoint) return recovered;
  ASSIGN_OR_RETURN(HeldSession held, CallOpener(options));
  ASSIGN_OR_RETURN(const auto missing, MakeReady(*held.session, options.clock));
  recovered.session = std::move(held);
  recovered.initialized = !missing;
  LOG_IF(INFO, missing.has_value()) << "restored, but " << *missing;
  return recovered;
}

absl::StatusOr<absl::optional<std::string>> SessionManager::Attempt(const SessionOptions& options,
                                                                    HeldSession* held) const {
  absl::StatusOr<HeldSession> opened = CallOpener(options);
  if (absl::IsUnavailable(opened.status())) return absl::make_optional(std::string(opened.status().message()));
  RETURN_IF_ERROR(opened.status());
  *held = *std::move(opened);
  return MakeReady(*held->session, options.clock);
}

absl::StatusOr<HeldSession> SessionManager::WaitForSession(const SessionOptions& options, absl::Duration max_wait) {
  if (options.is_chief) return absl::InvalidArgumentError("is_chief: is true; the chief calls PrepareSession");
  const absl::Time deadline = options.clock->Now() + max_wait;
  while (true) {
    SessionOptions attempt = options;
    if (max_wait != absl::InfiniteDuration()) {
      const absl::Duration left = std::max(deadline - options.clock->Now(), absl::ZeroDuration());
      attempt.max_wait = std::min(options.max_wait.value_or(left), left);
    }
    HeldSession held;
    ASSIGN_OR_RETURN(const auto missing, Attempt(attempt, &held));
    if (!missing) return held;
    held = HeldSession();
    if (deadline - options.clock->Now() - options_.recovery_wait < absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("the session was not ready within ", absl::FormatDuration(max_wait), ": ", *missing));
    }
    LOG(INFO) << "waiting for the session: " << *missing;
    RETURN_IF_ERROR(Pause(options_.recovery_wait, options.clock, options.stop));
  }
}

}  // namespace lockstep::train
