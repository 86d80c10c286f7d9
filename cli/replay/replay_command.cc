#include "lockstep/cli/replay/replay_command.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/launcher/process_table.h"
#include "lockstep/cli/launcher/programs.h"
#include "lockstep/cli/launcher/signal_wait.h"
#include "lockstep/cli/replay/program_replay.h"
#include "lockstep/cli/replay/replay_report.h"
#include "lockstep/cli/replay/replay_request.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/train/replay/run_replay.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {
namespace {

// Runs a program until it ends. Passes stop signals on, except Ctrl-C, which the terminal sends to the program, too.
absl::StatusOr<ProcessExit> RunInForeground(std::vector<std::string> command) {
  // Must be created before any other thread.
  SignalWait signals;
  PosixProcessTable processes;
  ProcessSpec spec;
  spec.command = std::move(command);
  spec.foreground = true;
  ASSIGN_OR_RETURN(const int pid, processes.Start(spec));
  while (true) {
    if (const auto exit = processes.NextExit()) return *exit;
    const auto signal = signals.Wait(absl::InfiniteDuration());
    if (!signal) continue;
    const bool is_ctrl_c = *signal == SIGINT && signals.from_kernel();
    if (IsStop(*signal) && !is_ctrl_c) processes.Signal(pid, *signal);
  }
}

// Returns the exit code of a replay that the program's worker computes.
absl::StatusOr<int> ReplayProgram(FileSystem* fs, const ReplayRequest& request,
                                  const std::vector<std::string>& program) {
  // The program may change its folder.
  std::string result = AbsolutePath(absl::StrCat(Environment("TMPDIR").value_or("/tmp"), "/lockstep-replay-XXXXXX"));
  const int file = mkstemp(&result[0]);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a file ", result));
  close(file);
  std::vector<std::string> command = EnvWords();
  command.push_back(ProgramReplay::Definition(request, result));
  command.insert(command.end(), program.begin(), program.end());
  const absl::StatusOr<ProcessExit> exit = RunInForeground(std::move(command));
  const std::string text = ReadFile(fs, result).value_or("");
  unlink(result.c_str());
  unlink(ProgramReplay::ClaimOf(result).c_str());
  RETURN_IF_ERROR(exit.status());
  int exit_code = kExitFailed;
  if (absl::SimpleAtoi(text, &exit_code)) return exit_code;
  return absl::UnknownError(
      absl::StrCat("the program ", ExitText(*exit), " before a worker in it had computed the replay"));
}

}  // namespace

int ReplayCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  ReplayRequest request;
  const auto end = std::find(words.begin(), words.end(), "--");
  if (const auto exit_code = request.Parse({words.begin(), end}, out, err)) return *exit_code;
  if (end == words.end()) {
    RunReplay::Options options;
    options.fs = fs;
    options.make_workload = [fs](const config::v1::RunSpec& config) {
      WorkloadOptions workload;
      workload.fs = fs;
      workload.prefetch = false;
      return LoadWorkload(config, workload);
    };
    return ReplayExitCode(Replay(request, std::move(options), out), err);
  }
  if (end + 1 == words.end()) {
    return PrintError(kReplayCommand, "there is no program after \"--\"", kExitBadConfiguration, err);
  }
  const absl::StatusOr<int> exit_code = ReplayProgram(fs, request, {end + 1, words.end()});
  return exit_code.ok() ? *exit_code : PrintError(kReplayCommand, exit_code.status().message(), kExitFailed, err);
}

}  // namespace lockstep
