#ifndef LOCKSTEP_CLI_REPLAY_REPLAY_COMMAND_H_
#define LOCKSTEP_CLI_REPLAY_REPLAY_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Recomputes steps, or one slot, of a recorded run. A Command (cli/commands/commands.h).
int ReplayCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPLAY_REPLAY_COMMAND_H_
