#include "lockstep/cli/lockstep_program.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/cli/checkpoint/export_command.h"
#include "lockstep/cli/checkpoint/inspect.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/replay/replay_command.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/version.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/flags/nearest_name.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/process/chief_program.h"
#include "lockstep/worker/session/worker_program.h"

namespace lockstep {
namespace {

struct NamedCommand {
  const char* name;
  const char* summary;
  // Null for the chief and the worker, which have their own main functions.
  Command run;
};

constexpr NamedCommand kCommands[] = {
    {"run", "a chief and workers on this machine, until the last step; then an evaluation", RunCommand},
    {"launch", "a program in several processes, and a chief for the run that it declares", LaunchCommand},
    {"local", "the same in one process, without a socket", LocalCommand},
    {"chief", "serves a run to workers; owns its variables, checkpoints and events", nullptr},
    {"worker", "computes gradients for a chief; with --master= (empty) the same as local", nullptr},
    {"task", "one task of a cluster, in the role that Slurm, Kubernetes, torchrun or others give it", TaskCommand},
    {"new", "writes a configuration to start from", NewCommand},
    {"look", "examples, labels and ranges of a configuration's data", LookCommand},
    {"check", "verifies a configuration and shows its model", CheckCommand},
    {"status", "what a running chief and its workers are doing", StatusCommand},
    {"page", "a run in a browser: loss, workers, events; metrics for Prometheus", PageCommand},
    {"trace", "the last steps of a running cluster, as a time line", TraceCommand},
    {"read", "variables of a running chief, all at one step", ReadCommand},
    {"probe", "whether a chief is well, as an exit code", ProbeCommand},
    {"eval", "how good a run's checkpoint is", EvalCommand},
    {"predict", "what it answers for each example, as CSV", PredictCommand},
    {"inspect", "what is in a checkpoint", Inspect},
    {"replay", "steps or one slot of a recorded run, computed again to the same bits", ReplayCommand},
    {"export", "its weights as a file that other programs read", ExportCommand},
    {"certs", "certificates for the processes of a cluster, by their roles", CertsCommand},
    {"authz", "what each role may do", AuthzCommand},
    {"completion", "a script with which bash or zsh completes commands and flags", CompletionCommand},
};

void PrintHelp(std::ostream& out) {
  out << "Usage: lockstep COMMAND [arguments]\n\n";
  for (const NamedCommand& command : kCommands) {
    out << "  " << command.name << std::string(12 - std::string(command.name).size(), ' ') << command.summary << "\n";
  }
  out << "\nWhat each of them takes: lockstep COMMAND --help. Which build this is: lockstep --version\n"
         "Exit codes: 0 done; 1 failed; 2 wrong arguments or configuration; 138 starting again may help; 143 "
         "stopped.\n";
}

int UnknownCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedCommand& command : kCommands) names.push_back(command.name);
  const std::string nearest = NearestName(name, names);
  std::cerr << "lockstep: no command \"" << name << "\""
            << (nearest.empty() ? "; try --help" : absl::StrCat("; did you mean ", nearest, "?")) << "\n";
  return kExitBadConfiguration;
}

}  // namespace

int LockstepMain(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "--help";
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  if (name == "chief") return ChiefMain(argc - 1, argv + 1);
  // A worker with an empty master runs its chief in the same process.
  const bool local_worker = name == "worker" && CommandLine::ValueOf("master", words) == "";
  if (name == "worker" && !local_worker) return WorkerMain(argc - 1, argv + 1);
  InitializeProcess(argv[0]);
  if (name == "help" || name == "--help" || name == "-h") {
    PrintHelp(std::cout);
    return kExitDone;
  }
  if (local_worker) return LocalCommand(FileSystem::Real(), words, std::cout, std::cerr);
  if (name == "version" || name == "--version") {
    std::cout << BuildText("lockstep", ThisBuild());
    return kExitDone;
  }
  for (const NamedCommand& command : kCommands) {
    if (name == command.name) return command.run(FileSystem::Real(), words, std::cout, std::cerr);
  }
  return UnknownCommand(name);
}

}  // namespace lockstep
