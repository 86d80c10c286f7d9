#include <algorithm>
#include <iostream>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/task_processes.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/flags/command_line.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep launch";

}  // namespace

int LaunchCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  ProcessFlags flags;
  CommandLine command_line(
      kName, "Runs a program that trains, in several processes of this machine, and a chief for them.",
      "The program follows \"--\". Its first process declares the run (lockstep.Run in Python); the chief starts "
      "then.\n"
      "What is killed is started again; an error of a program ends all. The output of the first process is shown, the\n"
      "others' are in a folder that is named at the start. Signals: as for lockstep run. On several machines: lockstep "
      "task.\n"
      "Exit codes: 0 the run is over and no process has ended with an error code; 1 it failed; 2 wrong arguments; 138\n"
      "starting again may help; 143 stopped, the last step is saved.\n"
      "Example: lockstep launch --workers=4 -- python train.py");
  flags.Declare("processes of the program. Does not change the result.",
                "the chief's address, for workers of other machines, too; when absent a unix socket, which this user "
                "alone can reach",
                &command_line);
  const auto end = std::find(words.begin(), words.end(), "--");
  if (const auto exit_code = command_line.Parse({words.begin(), end}, out, err)) return *exit_code;
  // This task runs the chief and all workers.
  TaskProcesses processes;
  processes.name = kName;
  if (end != words.end()) processes.program.assign(end + 1, words.end());
  if (processes.program.empty()) {
    return PrintError(kName, "there is no program; it follows \"--\": lockstep launch -- python train.py",
                      kExitBadConfiguration, err);
  }
  const absl::Status checked = flags.Check(fs);
  if (!checked.ok()) return PrintError(kName, checked.message(), kExitBadConfiguration, err);
  processes.task.role = Role::kChief;
  processes.task.listen = flags.listen;
  processes.security = flags.security;
  processes.launcher = flags.launcher;
  processes.has_logs = true;
  return RunTaskProcesses(fs, processes, out, err);
}

}  // namespace lockstep
