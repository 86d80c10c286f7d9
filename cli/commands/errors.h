#ifndef LOCKSTEP_CLI_COMMANDS_ERRORS_H_
#define LOCKSTEP_CLI_COMMANDS_ERRORS_H_

#include <ostream>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Prints "<command>: <line>" for each line of the message, Printable; returns `exit_code`.
int PrintError(absl::string_view command, absl::string_view message, int exit_code, std::ostream& err);

// Returns the exit code for an error of reading a user's input: 2 if the name is wrong or absent, 1 for damage and the
// rest.
int ExitCodeOfInput(const absl::Status& status);

// Returns the exit code for an error that CheckRun finds before anything starts: 2 also for damaged data, because
// another start would find the same damage.
int ExitCodeOfCheck(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_ERRORS_H_
