#include "cli/lockstep_program.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/inspect.h"
#include "common/base/nearest_name.h"
#include "common/base/process.h"
#include "common/io/file_system.h"
#include "worker/session/worker_program.h"

namespace lockstep {
namespace {

struct NamedCommand {
  const char* name;
  const char* summary;
  // Null for the worker, which is a program of its own.
  Command run;
};

constexpr NamedCommand kCommands[] = {
    {"run", "a chief and workers on this machine, until the last step; then an evaluation", RunCommand},
    {"local", "the same in one process, without a socket", LocalCommand},
    {"worker", "computes gradients for a chief", nullptr},
    {"new", "writes a configuration to start from", NewCommand},
    {"check", "verifies a configuration and shows its model", CheckCommand},
    {"status", "what a running chief and its workers are doing", StatusCommand},
    {"probe", "whether a chief is well, as an exit code", ProbeCommand},
    {"eval", "how good a run's checkpoint is", EvalCommand},
    {"predict", "what it answers for each example, as CSV", PredictCommand},
    {"inspect", "what is in a checkpoint", Inspect},
};

void PrintHelp(std::ostream& out) {
  out << "Usage: lockstep COMMAND [arguments]\n\n";
  for (const NamedCommand& command : kCommands) {
    out << "  " << command.name << std::string(10 - std::string(command.name).size(), ' ') << command.summary << "\n";
  }
  out << "\nWhat each of them takes: lockstep COMMAND --help\n"
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
  if (name == "worker") return WorkerMain(argc - 1, argv + 1);
  InitializeProcess(argv[0]);
  if (name == "help" || name == "--help" || name == "-h") {
    PrintHelp(std::cout);
    return kExitDone;
  }
  const std::vector<std::string> words(argv + 2, argv + argc);
  for (const NamedCommand& command : kCommands) {
    if (name == command.name) return command.run(FileSystem::Real(), words, std::cout, std::cerr);
  }
  return UnknownCommand(name);
}

}  // namespace lockstep
