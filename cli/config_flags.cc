#include "cli/config_flags.h"

#include <unistd.h>

#include <climits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/process.h"
#include "common/config/run_config.h"

namespace lockstep {

void ConfigFlags::Declare(CommandLine* command_line) {
  command_line->AddArgument("CONFIG", "the run's configuration, a textproto", &config);
  command_line->AddFlag("steps", "N", "the global step at which the run is finished", &steps);
  command_line->AddFlag("seed", "N", "of initial values, shuffling and dropout", &seed);
  command_line->AddFlag("set", "PATH=VALUE",
                        "sets any field of the configuration, such as --set=optimizer.learning_rate.initial=0.01",
                        &set);
}

absl::StatusOr<RunConfig> ConfigFlags::Load(FileSystem* fs, std::unique_ptr<ConfigSource>* source) const {
  std::vector<std::string> overrides = set;
  if (steps) overrides.push_back(absl::StrCat("training.steps=", *steps));
  if (seed) overrides.push_back(absl::StrCat("training.seed=", *seed));
  return LoadRunConfig(fs, AbsolutePath(config), overrides, source);
}

std::vector<std::string> ConfigFlags::ToWords() const {
  std::vector<std::string> words = {AbsolutePath(config)};
  if (steps) words.push_back(absl::StrCat("--steps=", *steps));
  if (seed) words.push_back(absl::StrCat("--seed=", *seed));
  for (const std::string& override : set) words.push_back(absl::StrCat("--set=", override));
  return words;
}

std::string AbsolutePath(const std::string& path) {
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof directory) == nullptr) return path;
  return JoinPath(directory, path);
}

int PrintError(absl::string_view command, absl::string_view message, int exit_code, std::ostream& err) {
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(message, "\n"), '\n')) {
    err << command << ": " << line << "\n";
  }
  return exit_code;
}

int ExitCodeOfInput(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
      return kExitBadConfiguration;
    default:
      return ExitCodeOf(status);
  }
}

}  // namespace lockstep
