#ifndef LOCKSTEP_CLI_COMMANDS_ERRORS_H_
#define LOCKSTEP_CLI_COMMANDS_ERRORS_H_

#include <ostream>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Prints "<command>: <line>" for each line of the message, after escaping the line with Printable. Returns `exit_code`.
int PrintError(absl::string_view command, absl::string_view message, int exit_code, std::ostream& err);

// Returns the exit code for an error in reading a user's input, e.g. a configuration, data or a checkpoint. It is 2 if
// the input is wrong, absent or damaged, since the same command would fail again, and 1 if it cannot be read.
int ExitCodeOfInput(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_ERRORS_H_
