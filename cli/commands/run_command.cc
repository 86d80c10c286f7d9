#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/task_processes.h"
#include "lockstep/cli/launcher/launcher.h"
#include "lockstep/cli/launcher/process_table.h"
#include "lockstep/cli/launcher/programs.h"
#include "lockstep/cli/launcher/run_page.h"
#include "lockstep/cli/launcher/run_socket.h"
#include "lockstep/cli/launcher/signal_wait.h"
#include "lockstep/cli/report/run_progress.h"
#include "lockstep/cli/report/run_report.h"
#include "lockstep/cli/report/status_poller.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/train/evaluation/background_evaluation.h"
#include "lockstep/train/program/local_run.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStatusPeriod = absl::Milliseconds(500);
constexpr absl::Duration kEvaluationPeriod = absl::Seconds(2);
constexpr absl::Duration kStatusTimeout = absl::Seconds(2);

struct RunFlags {
  ConfigFlags config;
  ProcessFlags processes;
  absl::optional<std::string> logdir;
  absl::optional<std::string> master;
  std::string page = "127.0.0.1:9464";
  int compute_threads = 0;
  bool new_run = false;
};

void DeclareShared(RunFlags* flags, CommandLine* command_line) {
  flags->config.Declare(command_line);
  command_line->AddFlag("logdir", "DIR", "checkpoints, summaries and logs go here; runs/<name of CONFIG> when absent",
                        &flags->logdir);
  command_line->AddFlag("compute_threads", "N",
                        "threads that compute in each worker; 0: as configured. Does not change the result.",
                        &flags->compute_threads);
  command_line->AddFlag("new_run", "",
                        "an empty logdir is meant to be one: a new run begins there, and workers of another run are "
                        "refused",
                        &flags->new_run);
}

RunProgress TerminalProgress() {
  winsize size = {};
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  if (terminal) ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return RunProgress(terminal, size.ws_col > 0 ? size.ws_col : 80);
}

// Returns a socket on which the chief also listens for its own workers, because steps take less time over it than over
// TCP. If null, the workers use the chief's listening address.
std::unique_ptr<RunSocket> WorkersSocket(const RunFlags& flags, const std::string& logdir) {
  if (IsUnixAddress(flags.processes.listen)) return nullptr;
  auto socket = RunSocket::Create(RunSocket::UsualPlaces(), logdir);
  if (socket.ok()) return *std::move(socket);
  LOG(WARNING) << "workers use TCP on loopback: " << socket.status().message();
  return nullptr;
}

// `socket` is the chief's address for its own workers, or empty if they have no separate address.
Launcher::Options LauncherOptions(FileSystem* fs, const RunFlags& flags, const config::v1::RunSpec& config,
                                  const std::string& logdir, const std::string& log_directory,
                                  const std::string& socket) {
  Launcher::Options options = flags.processes.launcher;
  options.clock = Clock::Real();
  options.fs = fs;
  options.listen = flags.processes.listen;
  options.port_file = JoinPath(log_directory, "chief.port");
  options.log_directory = log_directory;
  options.stop_limit = absl::Seconds(config.checkpoint().stop_seconds()) + kChiefEnd;
  ChiefCommand chief;
  chief.logdir = logdir;
  chief.socket = socket;
  chief.security = flags.processes.security;
  chief.port_file = options.port_file;
  chief.lock_wait = options.stop_limit;
  chief.new_run = flags.new_run;
  chief.config = flags.config.ToWords();
  options.chief_command = [chief](const std::string& listen) { return chief.Words(listen); };
  options.worker_command = [words = WorkerWords(), threads = flags.compute_threads, logdir, socket](
                               int index, const std::string& master) {
    std::vector<std::string> command = words;
    command.insert(command.end(), {absl::StrCat("--master=", socket.empty() ? master : socket),
                                   absl::StrCat("--name=worker-", index), absl::StrCat("--compute_threads=", threads),
                                   absl::StrCat("--index_dir=", JoinPath(logdir, "index"))});
    return command;
  };
  return options;
}

RunPage::Options PageOptions(FileSystem* fs, const RunFlags& flags, const std::string& logdir,
                             const std::string& log_directory, ProcessTable* processes) {
  RunPage::Options page;
  page.processes = processes;
  page.fs = fs;
  page.command = {ThisProgram(), "page"};
  const std::string& tls_dir = flags.processes.security.tls_dir;
  if (!tls_dir.empty()) page.command.push_back(absl::StrCat("--tls_dir=", tls_dir));
  page.http = flags.page;
  page.logdir = logdir;
  page.log_directory = log_directory;
  return page;
}

// Runs the processes until all have ended, and shows progress. `page` may be null.
absl::StatusOr<Launcher::Outcome> Supervise(Launcher::Options options, PosixProcessTable* processes, RunPage* page,
                                            const config::v1::RunSpec& config, const std::string& logdir,
                                            const std::string& tls_dir, std::ostream& out) {
  // Must be created before any other thread.
  SignalWait signals;
  RunProgress progress = TerminalProgress();
  options.processes = processes;
  if (page != nullptr) options.on_other_exit = [page](int pid) { page->OnExit(pid); };
  options.say = [&](const std::string& line) { out << progress.Say(line) << std::flush; };
  Launcher supervisor(options);
  RETURN_IF_ERROR(supervisor.Start());
  BackgroundEvaluation evaluation(options.fs, Clock::Real(), config, logdir, kEvaluationPeriod);
  std::unique_ptr<StatusPoller> poller;
  bool stopped = false;
  while (!supervisor.outcome().has_value()) {
    const absl::Time now = Clock::Real()->Now();
    const absl::optional<int> signal = signals.Wait(std::min(supervisor.next_poll(), now + kStatusPeriod) - now);
    if (signal.has_value() && IsStop(*signal)) {
      stopped = true;
      evaluation.Cancel();
    }
    if (signal.has_value() && *signal != SIGCHLD) supervisor.OnSignal(*signal);
    supervisor.Poll();
    if (poller == nullptr && !supervisor.master().empty()) {
      ASSIGN_OR_RETURN(const MasterAddress address, ParseMasterAddress(supervisor.master()));
      GrpcClientOptions client_options;
      client_options.call_timeout = kStatusTimeout;
      client_options.credentials = Credentials(tls_dir);
      out << progress.Say(absl::StrCat("status: ./lockstep status --master=", supervisor.master())) << std::flush;
      poller = std::make_unique<StatusPoller>(NewGrpcChiefClient(address.targets[0], client_options), Clock::Real(),
                                              kStatusPeriod);
      if (page != nullptr) page->Start(supervisor.master());
    }
    if (page != nullptr) {
      if (const auto line = page->TakeLine()) out << progress.Say(*line) << std::flush;
    }
    for (const std::string& line : evaluation.TakeLines()) out << progress.Say(line) << std::flush;
    if (poller == nullptr) continue;
    if (const absl::optional<v1::RunStatus> status = poller->Take()) {
      out << progress.Show(*status, Clock::Real()->Now()) << std::flush;
    }
  }
  if (supervisor.outcome()->exit_code != kExitDone) {
    evaluation.Cancel();
    if (stopped) signals.IgnoreStops();
  }
  out << progress.Finish() << std::flush;
  return *supervisor.outcome();
}

int Failed(absl::string_view command, const absl::Status& status, std::ostream& err) {
  return PrintError(command, status.message(), ExitCodeOfInput(status), err);
}

int ReportEnd(const RunReport& report, absl::string_view command, const absl::StatusOr<RunReport::End>& end,
              absl::Time began, std::ostream& out, std::ostream& err) {
  const absl::Status status = end.ok() ? report.Finished(*end, Clock::Real()->Now() - began, out) : end.status();
  return status.ok() ? kExitDone : PrintError(command, status.message(), kExitFailed, err);
}

int RunProcesses(FileSystem* fs, RunFlags flags, const config::v1::RunSpec& config, const ConfigSource& source,
                 const std::string& logdir, std::ostream& out, std::ostream& err) {
  constexpr absl::string_view kCommand = "lockstep run";
  const auto report = RunReport::Create(fs, config, logdir);
  if (!report.ok()) return Failed(kCommand, source.Locate(report.status()), err);
  const std::string log_directory = JoinPath(logdir, "log");
  const absl::Status created = fs->CreateDirectory(log_directory);
  if (!created.ok()) return Failed(kCommand, created, err);
  const auto lock = fs->LockFile(JoinPath(log_directory, "run.lock"));
  if (!lock.ok()) {
    return PrintError(kCommand, absl::StrCat("another lockstep run uses ", logdir, " (", lock.status().message(), ")"),
                      kExitRetryable, err);
  }
  const std::unique_ptr<RunSocket> socket = WorkersSocket(flags, logdir);
  std::string* const listen = &flags.processes.listen;
  if (listen->empty()) *listen = socket == nullptr ? "127.0.0.1:0" : socket->address();

  out << (*report)->Beginning(CountText(flags.processes.launcher.workers, "worker")) << "\n" << std::flush;
  // The chief of a run that was killed may still hold the directory.
  if (RunDirectory::IsHeld(fs, logdir)) {
    out << "waiting for another chief, which is still ending in " << logdir << "\n" << std::flush;
  }
  const absl::Time began = Clock::Real()->Now();
  PosixProcessTable processes;
  // The page also shows the run during the final evaluation.
  absl::optional<RunPage> page;
  if (!flags.page.empty()) page.emplace(PageOptions(fs, flags, logdir, log_directory, &processes));
  const auto outcome = Supervise(
      LauncherOptions(fs, flags, config, logdir, log_directory, socket == nullptr ? std::string() : socket->address()),
      &processes, page ? &*page : nullptr, config, logdir, flags.processes.security.tls_dir, out);
  if (!outcome.ok()) return Failed(kCommand, outcome.status(), err);
  if (outcome->exit_code == kExitDone) return ReportEnd(**report, kCommand, (*report)->RecordedEnd(), began, out, err);
  return ReportOutcome(fs, kCommand, *outcome, out, err);
}

int RunInProcess(absl::string_view command, FileSystem* fs, const RunFlags& flags, const config::v1::RunSpec& config,
                 const ConfigSource& source, const std::string& logdir, std::ostream& out, std::ostream& err) {
  const auto report = RunReport::Create(fs, config, logdir);
  if (!report.ok()) return Failed(command, source.Locate(report.status()), err);
  out << (*report)->Beginning(absl::StrCat(CountText(flags.processes.launcher.workers, "worker"), " in this process"))
      << "\n"
      << std::flush;
  // INFO logs would disturb the progress line.
  FLAGS_minloglevel = google::GLOG_WARNING;
  const absl::Time began = Clock::Real()->Now();
  RunProgress progress = TerminalProgress();
  LocalRunOptions options;
  options.logdir = logdir;
  options.workers = flags.processes.launcher.workers;
  options.workload.compute_threads = flags.compute_threads;
  options.change_settings = flags.config.changes_settings();
  options.new_run = flags.new_run;
  absl::optional<BackgroundEvaluation> evaluation;
  // The last status received.
  v1::RunStatus last;
  options.on_status = [&](const v1::RunStatus& status) {
    last = status;
    for (const std::string& line : evaluation->TakeLines()) out << progress.Say(line);
    out << progress.Show(status, Clock::Real()->Now()) << std::flush;
  };
  LocalRunEnd end;
  {
    // Its destructor restores the signals for the evaluation.
    SignalWait signals;
    evaluation.emplace(fs, Clock::Real(), config, logdir, kEvaluationPeriod);
    end = RunLocal(config, options);
    if (!end.status.ok()) evaluation->Cancel();
    if (absl::IsCancelled(end.status) || absl::IsDeadlineExceeded(end.status)) signals.IgnoreStops();
    evaluation.reset();
  }
  out << progress.Finish() << std::flush;
  if (end.status.ok()) {
    return ReportEnd(**report, command, RunReport::End{last.global_step(), last.message()}, began, out, err);
  }
  if (!absl::IsCancelled(end.status)) return PrintError(command, end.status.message(), end.exit_code, err);
  out << "stopped: " << SignalText(end.stop_signal) << " was received; "
      << (logdir.empty() ? "nothing was kept without a --logdir" : "the same command resumes from the last checkpoint")
      << "\n";
  return end.exit_code;
}

}  // namespace

int RunCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  RunFlags flags;
  CommandLine command_line(
      "lockstep run", "Trains on this machine: starts a chief and workers, keeps them alive, evaluates the result.",
      "The same command resumes a stopped run. Ctrl-C saves a checkpoint and stops;\n"
      "once more, at least a second later, stops at once. SIGTERM, SIGHUP and SIGXCPU stop as Ctrl-C does, and "
      "repeated "
      "change nothing.\n"
      "SIGUSR1 and SIGUSR2 make the chief save a checkpoint now, and the run continues.\n"
      "Exit codes: 0 the last step is saved; 1 the run failed, or was stopped and its last step could not be saved;\n"
      "2 wrong arguments or configuration; 138 starting again may help; 143 stopped, the last step is saved.\n"
      "Example: lockstep run examples/fashion_mnist.textproto --workers=2");
  DeclareShared(&flags, &command_line);
  flags.processes.Declare(
      "worker processes. Does not change the result.",
      "where the chief listens in addition to the unix socket of its workers, which this user alone can "
      "reach; port 0 takes any; also unix:/path",
      &command_line);
  command_line.AddFlag(
      "page", "HOST:PORT",
      "where a page about the run is served; if the port is in use, at another one; --page= (empty): none",
      &flags.page);
  command_line.AddFlag("master", "", "--master= (empty): all in this process without a socket, as lockstep local",
                       &flags.master);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const absl::Status checked = flags.processes.Check(fs);
  if (!checked.ok()) return PrintError("lockstep run", checked.message(), kExitBadConfiguration, err);
  if (absl::StrContains(flags.processes.listen, ',')) {
    return PrintError("lockstep run", absl::StrCat("--listen takes one address, not ", flags.processes.listen),
                      kExitBadConfiguration, err);
  }
  if (flags.master.has_value() && !flags.master->empty()) {
    return PrintError("lockstep run",
                      absl::StrCat("starts a chief of its own; to work for ", *flags.master,
                                   " type: lockstep worker --master=", *flags.master),
                      kExitBadConfiguration, err);
  }
  std::unique_ptr<ConfigSource> source;
  const auto config = flags.config.Load(fs, &source);
  if (!config.ok()) return Failed("lockstep run", config.status(), err);
  const std::string logdir = flags.logdir.value_or(DefaultLogdir(flags.config.config));
  if (flags.master.has_value()) return RunInProcess("lockstep run", fs, flags, *config, *source, logdir, out, err);
  if (logdir.empty()) {
    return PrintError("lockstep run", "--logdir is empty; only lockstep local can do without", kExitBadConfiguration,
                      err);
  }
  return RunProcesses(fs, flags, *config, *source, logdir, out, err);
}

int LocalCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  RunFlags flags;
  flags.processes.launcher.workers = 1;
  CommandLine command_line(
      "lockstep local", "Trains in one process, without a socket, and evaluates the result.",
      "An empty --logdir= keeps nothing. Ctrl-C saves a checkpoint and stops; once more, at least a second later, "
      "stops\n"
      "at once. SIGTERM, SIGHUP and SIGXCPU stop as Ctrl-C does, and repeated change nothing. SIGUSR1 and SIGUSR2 "
      "save\n"
      "a checkpoint now, and the run continues.\n"
      "Exit codes: 0 the last step is saved; 1 the run failed, or was stopped and its last step\n"
      "could not be saved; 2 wrong arguments or configuration; 143 stopped, the last step is saved.");
  DeclareShared(&flags, &command_line);
  std::string master;
  command_line.AddFlag("workers", "N", "workers, each a thread. Does not change the result.",
                       &flags.processes.launcher.workers);
  command_line.AddFlag("master", "", "may be given, empty", &master);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  if (flags.processes.launcher.workers < 1 || !master.empty()) {
    return PrintError("lockstep local",
                      absl::StrCat("--workers must be at least 1 and --master empty, not ",
                                   flags.processes.launcher.workers, " and \"", master, "\""),
                      kExitBadConfiguration, err);
  }
  std::unique_ptr<ConfigSource> source;
  const auto config = flags.config.Load(fs, &source);
  if (!config.ok()) return Failed("lockstep local", config.status(), err);
  return RunInProcess("lockstep local", fs, flags, *config, *source,
                      flags.logdir.value_or(DefaultLogdir(flags.config.config)), out, err);
}

}  // namespace lockstep
