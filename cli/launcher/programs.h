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

// Records that this program's main function is LockstepMain, so that the program runs the command named by its first
// argument. Called by LockstepMain.
void NoteCommandLine();
// Returns true after NoteCommandLine. Other programs that call a command, such as tests, must not start themselves
// again with a command as the argument, because they would run their own main function instead.
bool IsCommandLine();

// Returns the path of the chief's program: LOCKSTEP_CHIEF_BINARY, or else the program in Bazel's output folder or next
// to this program. Returns NotFound naming these places.
absl::StatusOr<std::string> FindChief(FileSystem* fs);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_
