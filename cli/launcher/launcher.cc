#include "lockstep/cli/launcher/launcher.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"

namespace lockstep {
namespace {

// Interval between checks for the port file.
constexpr absl::Duration kPortPoll = absl::Milliseconds(20);
// Time for the chief to exit by itself when the run is over.
constexpr absl::Duration kGrace = absl::Seconds(2);
// Time for processes to stop when nothing is left to save.
constexpr absl::Duration kKillGrace = absl::Seconds(5);

// Returns the host at which this machine reaches a chief that listens on `host`.
std::string LocalHost(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  if (host == "[::]") return "[::1]";
  return host;
}

Launcher::Outcome Stopped(absl::string_view message) {
  Launcher::Outcome outcome;
  outcome.exit_code = kExitTerminated;
  outcome.message = std::string(message);
  return outcome;
}

}  // namespace

Launcher::Launcher(Options options)
    : options_(std::move(options)),
      chief_("chief", LogPath("chief"), options_.max_restarts, 0),
      listen_(options_.listen),
      master_(options_.master),
      declared_(options_.is_declared == nullptr) {
  for (int i = 0; i < options_.workers; ++i) {
    const std::string name = absl::StrCat("worker-", i);
    workers_.emplace_back(name, LogPath(name), options_.max_restarts, i + 1);
  }
}

std::string Launcher::LogPath(const std::string& name) const {
  return options_.log_directory.empty() ? "" : JoinPath(options_.log_directory, absl::StrCat(name, ".log"));
}

absl::Status Launcher::Start() {
  if (HasChief()) {
    const absl::Status removed = options_.fs->Remove(options_.port_file);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  if (!declared_ || !HasChief()) {
    for (Child& worker : workers_) worker.start_at = options_.clock->Now();
    return absl::OkStatus();
  }
  return StartChild(&chief_, options_.chief_command(listen_));
}

absl::Status Launcher::StartChild(Child* child, std::vector<std::string> command) {
  child->start_at = absl::InfiniteFuture();
  if (!child->log_path.empty()) {
    const auto log = options_.fs->NewRandomAccessFile(child->log_path);
    child->log_offset = log.ok() ? (*log)->size() : 0;
  }
  ASSIGN_OR_RETURN(child->pid, options_.processes->Start({std::move(command), child->log_path}));
  child->started = options_.clock->Now();
  return absl::OkStatus();
}

void Launcher::Poll() {
  while (const absl::optional<ProcessExit> exit = options_.processes->NextExit()) OnExit(*exit);
  if (!ending_) {
    if (!declared_ && options_.is_declared()) {
      declared_ = true;
      chief_.start_at = options_.clock->Now();
    }
    if (master_.empty()) ReadPortFile();
    StartPending();
  }
  EscalateShutdown();
}

void Launcher::ReadPortFile() {
  // Until this chief has written the file, a chief listening on the unix socket may be another run's.
  const absl::StatusOr<std::string> text = ReadFile(options_.fs, options_.port_file);
  if (!text.ok()) return;
  if (IsUnixAddress(listen_)) {
    master_ = listen_;
  } else {
    int32_t port = 0;
    if (!absl::SimpleAtoi(*text, &port) || port < 1 || port > 65535) {
      Fail(chief_, kExitFailed,
           absl::StrCat("wrote \"", absl::StripAsciiWhitespace(*text), "\", not a port, to ", options_.port_file));
      return;
    }
    const std::string host = listen_.substr(0, listen_.rfind(':'));
    listen_ = absl::StrCat(host, ":", port);
    master_ = absl::StrCat("grpc://", LocalHost(host), ":", port);
  }
  for (Child& worker : workers_) worker.start_at = options_.clock->Now();
}

void Launcher::StartPending() {
  const absl::Time now = options_.clock->Now();
  if (chief_.start_at <= now) {
    const absl::Status status = StartChild(&chief_, options_.chief_command(listen_));
    if (!status.ok()) return Fail(chief_, kExitFailed, std::string(status.message()));
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].start_at > now) continue;
    const absl::Status status = StartChild(&workers_[i], options_.worker_command(static_cast<int>(i), master_));
    if (!status.ok()) return Fail(workers_[i], kExitFailed, std::string(status.message()));
  }
}

void Launcher::OnExit(const ProcessExit& exit) {
  Child* child = nullptr;
  for (Child* const each : Children()) {
    if (each->pid == exit.pid) child = each;
  }
  if (child == nullptr) {
    if (options_.on_other_exit) options_.on_other_exit(exit.pid);
    return;
  }
  child->pid = 0;
  const RestartPolicy::Decision decision = child->policy.OnExit(exit, options_.clock->Now() - child->started);
  if (ending_) {
    if (child == &chief_) return OnLateChiefEnd(exit, decision);
    // A program may also fail after the end of the run.
    if (options_.is_declared && decision.action == RestartPolicy::Decision::kFailed && end_.exit_code == kExitDone) {
      end_ = {decision.exit_code, absl::StrCat(child->name, " ", decision.text, " after the end of the run"),
              child->log_path, child->log_offset};
    }
  } else if (decision.action == RestartPolicy::Decision::kStartAgain) {
    options_.say(absl::StrCat(child->name, " ", decision.text));
    child->start_at = options_.clock->Now() + decision.delay;
  } else if (child == &chief_) {
    OnChiefEnd(decision);
  } else {
    OnWorkerEnd(child, decision);
  }
}

void Launcher::OnChiefEnd(const RestartPolicy::Decision& decision) {
  const absl::Time now = options_.clock->Now();
  switch (decision.action) {
    case RestartPolicy::Decision::kFinished:
      End({});
      return StopWorkersAt(now + options_.worker_grace);
    case RestartPolicy::Decision::kStopped:
      End(Stopped("chief was asked to stop"));
      return StopWorkersAt(now);
    default:
      return Fail(chief_, decision.exit_code, decision.text);
  }
}

void Launcher::OnLateChiefEnd(const ProcessExit& exit, const RestartPolicy::Decision& decision) {
  const bool programs_continue = options_.is_declared && decision.action == RestartPolicy::Decision::kFinished;
  const absl::Duration grace = chief_.told ? absl::ZeroDuration() : kGrace;
  StopWorkersAt(options_.clock->Now() + (programs_continue ? options_.worker_grace : grace));
  if (decision.action == RestartPolicy::Decision::kFinished) {
    if (!end_.message.empty() && end_.exit_code != kExitTerminated) options_.say(end_.message);
    end_ = {};
  } else if (decision.action == RestartPolicy::Decision::kStopped) {
    return;
  } else if (chief_.told) {
    const std::string text = absl::StrCat("chief ", ExitText(exit), " before its last step was saved");
    if (end_.exit_code != kExitTerminated) return options_.say(text);
    const int code = exit.exit_code == kExitRetryable ? kExitRetryable : decision.exit_code;
    end_ = {code, text, chief_.log_path, chief_.log_offset};
  } else if (failed_worker_ && decision.action == RestartPolicy::Decision::kFailed) {
    // The worker failed only because the run was already ending, so the chief's failure is reported as the cause.
    Fail(chief_, decision.exit_code, decision.text);
  }
}

void Launcher::OnWorkerEnd(Child* worker, const RestartPolicy::Decision& decision) {
  switch (decision.action) {
    case RestartPolicy::Decision::kFailed:
      return Fail(*worker, decision.exit_code, decision.text);
    case RestartPolicy::Decision::kStopped:
      options_.say(absl::StrCat(worker->name, " ", decision.text, "; the run continues without it"));
      if (AnyWorkerLeft() || (HasChief() && options_.other_workers)) return;
      End(Stopped("no worker is left"));
      return StopChiefAt(options_.clock->Now());
    default:
      // The worker has learned that the run is over. If this launcher has a chief, the chief's exit decides the
      // outcome.
      if (options_.is_declared) return OnDeclarerEnd(*worker);
      if (!HasChief() && !AnyWorkerLeft()) End({});
  }
}

void Launcher::OnDeclarerEnd(const Child& worker) {
  if (AnyWorkerLeft()) return;
  if (!declared_) return Fail(worker, kExitFailed, "ended without declaring a run: it made no worker");
  if (options_.other_workers) return;
  // If the run is over, the chief ends by itself, and a stop changes nothing. Otherwise the programs have left the run.
  End(Stopped("the program has left the run"));
  StopChiefAt(options_.clock->Now() + kGrace);
}

void Launcher::End(Outcome outcome) {
  ending_ = true;
  failed_worker_ = false;
  end_ = std::move(outcome);
}

void Launcher::Fail(const Child& culprit, int exit_code, const std::string& text) {
  End({exit_code, absl::StrCat(culprit.name, " ", text), culprit.log_path, culprit.log_offset});
  failed_worker_ = &culprit != &chief_;
  StopChiefAt(options_.clock->Now() + kGrace);
}

void Launcher::StopChiefAt(absl::Time when) {
  if (chief_.pid == 0) return StopWorkersAt(when);
  if (chief_.told) return;
  chief_.terminate_at = when;
  chief_.kill_at = when + options_.stop_limit;
}

void Launcher::StopWorkersAt(absl::Time when) {
  for (Child& worker : workers_) {
    if (worker.told) continue;
    worker.terminate_at = when;
    worker.kill_at = when + kKillGrace;
  }
}

void Launcher::OnSignal(int signal) {
  switch (stop_requests_.On(signal, options_.clock->Now())) {
    case StopRequests::Meaning::kStop:
      options_.say(absl::StrCat(ending_ || chief_.pid == 0 ? "stopping" : "stopping: the chief saves a checkpoint",
                                "; Ctrl-C once more stops at once"));
      if (!ending_ && HasChief() && chief_.pid == 0 && declared_) {
        // The chief was killed and has not been restarted yet, so updates since its last checkpoint are already lost.
        End({kExitRetryable, "chief was not running; the same command resumes from its last checkpoint",
             chief_.log_path, chief_.log_offset});
      } else if (!ending_) {
        End(Stopped(absl::StrCat(SignalText(signal), " was received")));
      }
      StopChiefAt(options_.clock->Now());
      break;
    case StopRequests::Meaning::kSame:
      return;
    case StopRequests::Meaning::kSave:
      return RequestSave();
    case StopRequests::Meaning::kAtOnce:
      StopAtOnce();
  }
  EscalateShutdown();
}

void Launcher::RequestSave() {
  if (!HasChief()) return options_.say("the chief saves, a worker has nothing to save; continues");
  if (ending_ || chief_.pid == 0) return options_.say("there is no chief that could save now");
  options_.say("the chief saves a checkpoint, and the run continues");
  // A chief that is not yet watching for signals ignores this one, as this process and its new children do. Nothing is
  // lost, since such a chief has nothing to save.
  options_.processes->Signal(chief_.pid, SIGUSR1);
}

void Launcher::StopAtOnce() {
  for (Child* const child : Children()) child->kill_at = options_.clock->Now();
}

void Launcher::EscalateShutdown() {
  if (!ending_ || outcome_.has_value()) return;
  bool any_runs = false;
  for (Child* const child : Children()) {
    if (child->pid == 0) continue;
    any_runs = true;
    Press(child);
  }
  if (!any_runs) outcome_ = end_;
}

void Launcher::Press(Child* child) {
  const absl::Time now = options_.clock->Now();
  if (now >= child->kill_at) {
    child->told = true;
    child->kill_at = child->terminate_at = absl::InfiniteFuture();
    options_.processes->Signal(child->pid, SIGKILL);
  } else if (now >= child->terminate_at) {
    child->told = true;
    child->terminate_at = absl::InfiniteFuture();
    options_.processes->Signal(child->pid, SIGTERM);
  }
}

std::vector<Launcher::Child*> Launcher::Children() {
  std::vector<Child*> children = {&chief_};
  for (Child& worker : workers_) children.push_back(&worker);
  return children;
}

bool Launcher::AnyWorkerLeft() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Child& w) { return w.pid != 0 || w.start_at != absl::InfiniteFuture(); });
}

absl::Time Launcher::next_poll() const {
  absl::Time next = absl::InfiniteFuture();
  if (ending_) {
    next = chief_.pid != 0 ? std::min(chief_.terminate_at, chief_.kill_at) : next;
    for (const Child& worker : workers_) {
      if (worker.pid != 0) next = std::min({next, worker.terminate_at, worker.kill_at});
    }
    return next;
  }
  next = master_.empty() || !declared_ ? options_.clock->Now() + kPortPoll : absl::InfiniteFuture();
  next = std::min(next, chief_.start_at);
  for (const Child& worker : workers_) next = std::min(next, worker.start_at);
  return next;
}

}  // namespace lockstep
