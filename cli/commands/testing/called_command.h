#ifndef LOCKSTEP_CLI_COMMANDS_TESTING_CALLED_COMMAND_H_
#define LOCKSTEP_CLI_COMMANDS_TESTING_CALLED_COMMAND_H_

#include <sstream>
#include <string>
#include <vector>

#include "lockstep/cli/commands/commands.h"

namespace lockstep {

struct CalledCommand {
  int exit_code;
  std::string out;
  std::string err;
};

// Calls a command on the real file system.
inline CalledCommand Call(Command command, const std::vector<std::string>& words) {
  std::ostringstream out, err;
  const int exit_code = command(FileSystem::Real(), words, out, err);
  return {exit_code, out.str(), err.str()};
}

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_TESTING_CALLED_COMMAND_H_
