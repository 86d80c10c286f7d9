#ifndef LOCKSTEP_CLI_SETUP_COMPLETION_COMMAND_H_
#define LOCKSTEP_CLI_SETUP_COMPLETION_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Prints a script that lets a shell complete commands, flags and files: lockstep completion bash|zsh.
int CompletionCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_SETUP_COMPLETION_COMMAND_H_
