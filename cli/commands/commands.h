#ifndef LOCKSTEP_CLI_COMMANDS_COMMANDS_H_
#define LOCKSTEP_CLI_COMMANDS_COMMANDS_H_

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The subcommands of lockstep_main. Each takes the arguments after its name, prints results to `out` and errors to
// `err`, and returns the exit code. --help has the details. RunCommand, LaunchCommand and TaskCommand start this
// program again, as a chief and workers, so its main function must be LockstepMain.
using Command = int (*)(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// Runs a chief and workers as processes on this machine until the last step, then evaluates.
int RunCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Like RunCommand, but runs everything in this process, without a socket.
int LocalCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Runs a program in several processes, and a chief for the run that the program declares.
int LaunchCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Runs one task of a cluster in the role that its launcher assigns. Must be called before any other thread exists.
int TaskCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// Shows the status of a running chief.
int StatusCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Serves a page about a run until it is stopped.
int PageCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Writes a running cluster's most recent steps as a timeline.
int TraceCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Reads the variables of a running chief.
int ReadCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Checks a chief's health. The exit code is the result.
int ProbeCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// Writes a configuration to start from.
int NewCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Shows the examples, labels and ranges of a configuration's data.
int LookCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Verifies a configuration and shows its model.
int CheckCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// Evaluates a run's checkpoint on a split of its data.
int EvalCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Writes the model's predictions as CSV, one line for each example.
int PredictCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// Makes a certificate authority and the kits for a run's processes: lockstep certs init, issue, revoke.
int CertsCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Prints a table of the calls that each role may make.
int AuthzCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);
// Prints a script that lets a shell complete commands, flags and files: lockstep completion bash|zsh.
int CompletionCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_COMMANDS_H_
