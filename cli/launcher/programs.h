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

// Notes that the main function of this program is LockstepMain, so that it runs the command that follows its name.
// Called by LockstepMain.
void NoteCommandLine();
// True after NoteCommandLine. Other programs that call a command, such as tests, must not be started with one: they
// would begin from the start.
bool IsCommandLine();

// Returns the program of a chief: LOCKSTEP_CHIEF_BINARY, or else the one in bazel's folder for it or next to this
// program. NotFound names the places.
absl::StatusOr<std::string> FindChief(FileSystem* fs);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_PROGRAMS_H_
