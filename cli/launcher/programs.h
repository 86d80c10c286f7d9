#ifndef LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_
#define LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_

#include <string>

#include "absl/types/optional.h"

namespace lockstep {

// Returns the value of an environment variable that is set and not empty.
absl::optional<std::string> Environment(const char* variable);

// Returns the path that this program had at the first call. If its file has been replaced since, for example by an
// update, that is the new program.
std::string ThisProgram();

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_
