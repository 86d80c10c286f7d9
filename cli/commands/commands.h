#ifndef LOCKSTEP_CLI_COMMANDS_COMMANDS_H_
#define LOCKSTEP_CLI_COMMANDS_COMMANDS_H_

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The subcommands of lockstep_main. Each takes the arguments after its name, prints results to `out` and errors to
// `err`, and returns the exit code; --help says the rest.
using Command = int (*)(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// A chief and workers as processes of this machine, until the last step; then an evaluation.
int RunCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// The same in this process, without a socket.
int LocalCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// What a running chief is doing.
int StatusCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// The variables of a running chief.
int ReadCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Whether a chief is well, as an exit code.
int ProbeCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// Writes a configuration to start from.
int NewCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Verifies a configuration and shows its model.
int CheckCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// How good a run's checkpoint is on a split of its data.
int EvalCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// The model's answer for each example, as CSV.
int PredictCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_COMMANDS_H_
