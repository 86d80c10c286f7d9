#ifndef LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_
#define LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace lockstep {

// Returns the value of an environment variable that is set and not empty.
absl::optional<std::string> Environment(const char* variable);

// Returns the path that this program had at the first call. If its file has been replaced since, for example by an
// update, that is the new program.
std::string ThisProgram();

// Returns the beginning of a command that runs a user's program: env, which searches PATH for it, as a shell does. The
// program does not inherit what InitializeProcess has set, because its gRPC may have no such experiments and say so.
std::vector<std::string> EnvWords();

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_
