#include "lockstep/cli/commands/task_processes.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/launcher/process_table.h"
#include "lockstep/cli/launcher/programs.h"
#include "lockstep/cli/launcher/signal_wait.h"
#include "lockstep/cli/report/run_report.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/server/rpc/admission/listen_address.h"

namespace lockstep {
namespace {

// The longest time between two reads of a worker's output.
constexpr absl::Duration kOutputPeriod = absl::Milliseconds(100);
constexpr int kShownLogLines = 20;

// Copies the text that was appended to a log since the last call of CopyTo.
class LogFollower {
 public:
  LogFollower(FileSystem* fs, std::string path) : fs_(fs), path_(std::move(path)) {}

  void CopyTo(std::ostream& out) {
    const auto file = fs_->NewRandomAccessFile(path_);
    if (!file.ok() || (*file)->size() <= offset_) return;
    std::string text((*file)->size() - offset_, '\0');
    if (!(*file)->Read(offset_, text.size(), &text[0]).ok()) return;
    offset_ += text.size();
    out << text << std::flush;
  }

 private:
  FileSystem* const fs_;
  const std::string path_;
  uint64_t offset_ = 0;
};

// Returns the address of a socket in `directory`.
std::string SocketFor(const std::string& directory) { return absl::StrCat("unix:", JoinPath(directory, "chief.sock")); }

// Returns the address of a socket in `directory`, which only this user can enter, or a loopback address if the socket's
// path is too long.
std::string SocketIn(const std::string& directory) {
  const std::string address = SocketFor(directory);
  return CheckListenAddresses(address).ok() ? address : "127.0.0.1:0";
}

// Returns the host at which this machine's processes reach a chief that listens on every address, or an empty string
// for any other chief.
std::string Loopback(const std::string& listen) {
  if (absl::StartsWith(listen, "0.0.0.0:")) return "127.0.0.1";
  return absl::StartsWith(listen, "[::]:") ? "[::1]" : "";
}

// Returns the socket through which this machine's workers reach a chief with TLS, because they cannot open a session
// over TCP with the chief's certificate. Returns an empty string if they need no socket.
absl::StatusOr<std::string> SocketBesideTls(const TaskProcesses& processes, const std::string& listen,
                                            const std::string& directory) {
  if (processes.security.tls_dir.empty() || IsUnixAddress(listen)) return "";
  const absl::Status possible = CheckListenAddresses(SocketFor(directory));
  if (possible.ok()) return SocketFor(directory);
  return absl::InvalidArgumentError(absl::StrCat("with --tls_dir the workers of this machine need a unix socket: ",
                                                 possible.message(), "; set TMPDIR to a shorter path"));
}

// Returns a worker's name, unique in the run, or an empty string if the task's name is unknown.
std::string WorkerName(const TaskProcesses& processes, int index) {
  const ResolvedTask& task = processes.task;
  if (task.role == Role::kChief && !processes.other_tasks) return absl::StrCat("worker-", index);
  return processes.launcher.workers < 2 || task.name.empty() ? task.name : absl::StrCat(task.name, ".", index);
}

// Returns a function that makes each worker's command line. `directory` is where a program declares its run, or empty
// if the run is already declared.
std::function<std::vector<std::string>(int, const std::string&)> WorkerCommand(const TaskProcesses& processes,
                                                                               const std::string& directory) {
  return [processes, directory](int index, const std::string& master) {
    const std::string name = WorkerName(processes, index);
    std::vector<std::string> command;
    if (processes.program.empty()) {
      command = WorkerWords();
      command.push_back(absl::StrCat("--master=", master));
      if (!name.empty()) command.push_back(absl::StrCat("--name=", name));
      if (processes.compute_threads > 0) {
        command.push_back(absl::StrCat("--compute_threads=", processes.compute_threads));
      }
      return command;
    }
    command = EnvWords();
    command.push_back(directory.empty() ? absl::StrCat("LOCKSTEP_MASTER=", master)
                                        : absl::StrCat("LOCKSTEP_LAUNCH=", directory));
    if (!name.empty()) command.push_back(absl::StrCat("LOCKSTEP_NAME=", name));
    command.insert(command.end(), processes.program.begin(), processes.program.end());
    return command;
  };
}

// Completes the options for a chief whose configuration is known.
absl::Status AddChief(const TaskProcesses& processes, const std::string& directory, Launcher::Options* options) {
  ChiefCommand chief;
  chief.logdir = processes.task.logdir;
  chief.port_file = options->port_file;
  chief.address_file = processes.task.address_file;
  // All tasks may have the same environment, so LOCKSTEP_ADVERTISE is ignored without an address file.
  if (!Environment("LOCKSTEP_ADDRESS_FILE") || !chief.address_file.empty()) chief.advertise = processes.task.advertise;
  chief.lock_wait = processes.stop_limit;
  chief.new_run = processes.new_run;
  chief.lingers = processes.other_tasks;
  chief.config = processes.config;
  chief.security = processes.security;
  options->worker_command = WorkerCommand(processes, "");
  ASSIGN_OR_RETURN(chief.socket, SocketBesideTls(processes, options->listen, directory));
  if (!chief.socket.empty()) {
    options->worker_command = [command = options->worker_command, socket = chief.socket](
                                  int index, const std::string&) { return command(index, socket); };
  }
  options->chief_command = [chief](const std::string& listen) { return chief.Words(listen); };
  return absl::OkStatus();
}

// Completes the options for the chief of a run that the program declares in `directory`.
absl::Status AddDeclaredChief(FileSystem* fs, const TaskProcesses& processes, const std::string& directory,
                              Launcher::Options* options) {
  const std::string declared = JoinPath(directory, "declared"), address = JoinPath(directory, "address");
  ChiefCommand chief;
  chief.address_file = address;
  chief.advertise = Loopback(options->listen);
  if (!processes.task.address_file.empty()) {
    // This task's programs read the address from `directory`; other tasks' programs read it from the address file.
    if (symlink(processes.task.address_file.c_str(), address.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a link ", address));
    }
    chief.address_file = processes.task.address_file;
    chief.advertise = processes.task.advertise;
  }
  chief.lock_wait = processes.stop_limit;
  chief.new_run = processes.new_run;
  chief.lingers = processes.other_tasks;
  chief.config = {JoinPath(declared, "run.textproto")};
  chief.security = processes.security;
  ASSIGN_OR_RETURN(chief.socket, SocketBesideTls(processes, options->listen, directory));
  if (!chief.socket.empty()) chief.advertise = chief.socket;
  options->is_declared = [fs, declared] { return fs->Exists(declared).value_or(false); };
  options->master = absl::StrCat("file:", address);
  options->worker_grace = absl::InfiniteDuration();
  options->chief_command = [fs, chief, declared](const std::string& listen) {
    ChiefCommand command = chief;
    command.logdir = ReadFile(fs, JoinPath(declared, "logdir")).value_or("");
    return command.Words(listen);
  };
  options->worker_command = WorkerCommand(processes, directory);
  return absl::OkStatus();
}

absl::StatusOr<Launcher::Options> LauncherOptions(FileSystem* fs, const TaskProcesses& processes,
                                                  const std::string& directory) {
  Launcher::Options options = processes.launcher;
  options.clock = Clock::Real();
  options.fs = fs;
  options.other_workers = processes.other_tasks;
  options.stop_limit = processes.stop_limit;
  if (processes.has_logs) options.log_directory = directory;
  if (processes.task.role != Role::kChief) {
    options.master = processes.task.master;
    options.worker_command = WorkerCommand(processes, "");
    return options;
  }
  options.listen = processes.task.listen.empty() ? SocketIn(directory) : processes.task.listen;
  options.port_file = JoinPath(directory, "chief.port");
  RETURN_IF_ERROR(processes.config.empty() ? AddDeclaredChief(fs, processes, directory, &options)
                                           : AddChief(processes, directory, &options));
  return options;
}

// Runs the processes until all have ended.
absl::StatusOr<Launcher::Outcome> Supervise(Launcher::Options options, std::ostream& out) {
  // Must be created before any other thread.
  SignalWait signals;
  PosixProcessTable table;
  absl::optional<LogFollower> output;
  if (!options.log_directory.empty()) {
    output.emplace(options.fs, JoinPath(options.log_directory, "worker-0.log"));
  }
  options.processes = &table;
  options.say = [&out](const std::string& line) { out << "lockstep: " << line << "\n" << std::flush; };
  Launcher launcher(options);
  RETURN_IF_ERROR(launcher.Start());
  while (!launcher.outcome().has_value()) {
    const absl::Time now = Clock::Real()->Now();
    const absl::Time next = output ? std::min(launcher.next_poll(), now + kOutputPeriod) : launcher.next_poll();
    const absl::optional<int> signal = signals.Wait(next - now);
    if (signal.has_value() && *signal != SIGCHLD) launcher.OnSignal(*signal);
    launcher.Poll();
    if (output) output->CopyTo(out);
  }
  if (output) output->CopyTo(out);
  return *launcher.outcome();
}

// Returns ": " and the message in the last of `lines`, if it is the process's message about its own failure. Otherwise
// returns an empty string.
std::string LastWords(absl::string_view lines, absl::string_view process) {
  absl::string_view line = absl::StripSuffix(lines, "\n");
  line = absl::StripLeadingAsciiWhitespace(line.substr(line.rfind('\n') + 1));
  // An error in a log looks like "E1127 08:57:58.123456 17 file.cc:1] chief: text". Before logging starts, it looks
  // like "chief: text".
  if (absl::StartsWith(line, "E")) {
    const size_t end = line.find("] ");
    if (end != absl::string_view::npos) line.remove_prefix(end + 2);
  }
  return absl::ConsumePrefix(&line, absl::StrCat(process, ": ")) ? absl::StrCat(": ", line) : "";
}

// Returns the program that the environment names, or else this program and its command.
std::vector<std::string> ProgramWords(const char* variable, const char* command) {
  if (const auto path = Environment(variable)) return {*path};
  return {ThisProgram(), command};
}

// Removes a directory if no process left a log and no program declared a run in it.
void RemoveTemporaryDirectory(const std::string& directory) {
  if (directory.empty()) return;
  for (const char* file : {"chief.port", "chief.sock", "address"}) unlink(JoinPath(directory, file).c_str());
  rmdir(directory.c_str());
}

}  // namespace

const absl::Duration kChiefEnd = kEndingLimit + absl::Seconds(5);

void ProcessFlags::Declare(const std::string& workers_help, const std::string& listen_help, CommandLine* command_line) {
  command_line->AddFlag("workers", "N", workers_help, &launcher.workers);
  command_line->AddFlag(
      "max_restarts", "N",
      "how often each process is started again when it dies; one restart is forgiven for every 10 minutes that it runs",
      &launcher.max_restarts);
  command_line->AddFlag("listen", "HOST:PORT", listen_help, &listen);
  security.Declare(command_line);
}

absl::Status ProcessFlags::Check(FileSystem* fs) const {
  if (launcher.workers >= 1 && launcher.max_restarts >= 0) {
    return CheckServeSecurity(fs, security, listen, Clock::Real()->WallTime());
  }
  return absl::InvalidArgumentError(absl::StrCat("--workers must be at least 1 and --max_restarts at least 0, not ",
                                                 launcher.workers, " and ", launcher.max_restarts));
}

std::vector<std::string> ChiefCommand::Words(const std::string& listen) const {
  std::vector<std::string> words = ProgramWords("LOCKSTEP_CHIEF_BINARY", "chief");
  words.insert(words.end(),
               {absl::StrCat("--logdir=", logdir),
                absl::StrCat("--listen=", listen, socket.empty() || socket == listen ? "" : absl::StrCat(",", socket)),
                absl::StrCat("--lock_wait_seconds=", absl::ToDoubleSeconds(lock_wait))});
  if (!port_file.empty()) words.push_back(absl::StrCat("--port_file=", port_file));
  if (!address_file.empty()) words.push_back(absl::StrCat("--address_file=", address_file));
  if (advertise) words.push_back(absl::StrCat("--advertise=", *advertise));
  if (new_run) words.push_back("--new_run");
  if (!lingers) words.push_back("--linger_seconds=0");
  const std::vector<std::string> secure = security.ToWords();
  words.insert(words.end(), secure.begin(), secure.end());
  words.insert(words.end(), config.begin(), config.end());
  return words;
}

std::vector<std::string> WorkerWords() { return ProgramWords("LOCKSTEP_WORKER_BINARY", "worker"); }

absl::StatusOr<std::string> MakeTemporaryDirectory() {
  std::string path = absl::StrCat(Environment("TMPDIR").value_or("/tmp"), "/lockstep-XXXXXX");
  if (mkdtemp(&path[0]) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a directory ", path));
  }
  return path;
}

int ReportOutcome(FileSystem* fs, absl::string_view command, const Launcher::Outcome& outcome, std::ostream& out,
                  std::ostream& err) {
  if (outcome.exit_code == kExitTerminated) {
    out << "stopped: " << outcome.message << "; the same command resumes from the last checkpoint\n";
    return outcome.exit_code;
  }
  std::string lines;
  if (!outcome.log_path.empty()) lines = LastLines(fs, outcome.log_path, outcome.log_offset, kShownLogLines);
  // The log may be empty, for example because the disk is full.
  if (!lines.empty()) err << "the last lines of " << outcome.log_path << ":\n" << lines;
  if (!outcome.message.empty()) {
    const std::string process = outcome.message.substr(0, outcome.message.find(' '));
    err << command << ": " << outcome.message << LastWords(lines, process) << "\n";
  }
  return outcome.exit_code;
}

int RunTaskProcesses(FileSystem* fs, const TaskProcesses& processes, std::ostream& out, std::ostream& err) {
  std::string directory;
  if (processes.has_logs || processes.task.role == Role::kChief) {
    const auto made = MakeTemporaryDirectory();
    if (!made.ok()) return PrintError(processes.name, made.status().message(), kExitFailed, err);
    directory = *made;
  }
  auto options = LauncherOptions(fs, processes, directory);
  if (!options.ok()) {
    RemoveTemporaryDirectory(directory);
    const bool wrong = absl::IsInvalidArgument(options.status());
    return PrintError(processes.name, options.status().message(), wrong ? kExitBadConfiguration : kExitFailed, err);
  }
  if (processes.has_logs) out << "lockstep: logs are in " << directory << "\n" << std::flush;
  auto outcome = Supervise(*options, out);
  if (!outcome.ok()) return PrintError(processes.name, outcome.status().message(), kExitFailed, err);
  // The first worker's output has already been shown.
  if (absl::EndsWith(outcome->log_path, "/worker-0.log")) outcome->log_path.clear();
  const int exit_code = ReportOutcome(fs, processes.name, *outcome, out, err);
  if (!processes.has_logs) RemoveTemporaryDirectory(directory);
  return exit_code;
}

}  // namespace lockstep
