#include "lockstep/cli/launcher/programs.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

bool is_command_line = false;

}  // namespace

void NoteCommandLine() { is_command_line = true; }

bool IsCommandLine() { return is_command_line; }

absl::optional<std::string> Environment(const char* variable) {
  const char* value = getenv(variable);
  if (value == nullptr || *value == '\0') return absl::nullopt;
  return std::string(value);
}

std::string ThisProgram() {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  return std::string(self, std::max<ssize_t>(0, size));
}

absl::StatusOr<std::string> FindChief(FileSystem* fs) {
  if (const auto path = Environment("LOCKSTEP_CHIEF_BINARY")) return *path;
  const std::string directory(Dirname(ThisProgram()));
  for (const char* name : {"../server/chief_main", "chief_main"}) {
    ASSIGN_OR_RETURN(const bool exists, fs->Exists(JoinPath(directory, name)));
    if (exists) return JoinPath(directory, name);
  }
  return absl::NotFoundError(absl::StrCat("there is no program chief_main near ", directory,
                                          "; build //server:chief_main or set LOCKSTEP_CHIEF_BINARY"));
}

}  // namespace lockstep
