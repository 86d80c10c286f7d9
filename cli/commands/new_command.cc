#include "absl/strings/str_cat.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/starting_configuration.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/command_line.h"

namespace lockstep {
namespace {

constexpr char kFileName[] = "run.textproto";

absl::StatusOr<std::string> WriteConfiguration(FileSystem* fs, const std::string& directory) {
  const std::string path = JoinPath(directory, kFileName);
  ASSIGN_OR_RETURN(const bool exists, fs->Exists(path));
  if (exists) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists already; it is not overwritten"));
  }
  RETURN_IF_ERROR(fs->CreateDirectory(directory));
  RETURN_IF_ERROR(WriteFileAtomically(fs, path, kStartingConfiguration));
  return path;
}

}  // namespace

int NewCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  std::string directory;
  CommandLine command_line("lockstep new", "Writes DIR/run.textproto, a configuration with comments to start from.",
                           "Exit codes: 0 written; 1 it cannot be written; 2 wrong arguments, or it exists.");
  command_line.AddArgument("DIR", "a directory, which is made when it is absent", &directory);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const auto path = WriteConfiguration(fs, directory);
  if (!path.ok()) {
    return PrintError("lockstep new", path.status().message(),
                      absl::IsAlreadyExists(path.status()) ? kExitBadConfiguration : kExitFailed, err);
  }
  out << "wrote " << *path << ", a perceptron for Fashion-MNIST\n"
      << "  edit it, then   ./lockstep check " << *path << "\n"
      << "  train           ./lockstep run " << *path << " --logdir=" << JoinPath(directory, "logdir") << "\n";
  return kExitDone;
}

}  // namespace lockstep
