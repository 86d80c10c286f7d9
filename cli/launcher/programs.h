#ifndef LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_
#define LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Returns the value of an environment variable that is set and not empty.
absl::optional<std::string> Environment(const char* variable);

// Returns the path of this program.
std::string ThisProgram();

// Records that this program's main function is LockstepMain, so that the program runs the command that follows its
// name. Called by LockstepMain.
void NoteCommandLine();
// Returns true after NoteCommandLine. Other programs that call a command, such as tests, must not be restarted with a
// command, because they would run from the start.
bool IsCommandLine();

// Returns the path of the chief's program: LOCKSTEP_CHIEF_BINARY, or else the program in Bazel's output folder or next
// to this program. Returns NotFound naming these places.
absl::StatusOr<std::string> FindChief(FileSystem* fs);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_
