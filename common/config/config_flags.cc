#include "lockstep/common/config/config_flags.h"

#include <unistd.h>

#include <climits>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/run_spec.h"

namespace lockstep {

void ConfigFlags::Declare(CommandLine* command_line, CommandLine::Presence presence) {
  command_line->AddArgument("CONFIG", "the run's configuration, a textproto", &config, presence);
  command_line->AddFlag("steps", "N", "the global step at which the run is finished", &steps);
  command_line->AddFlag("seed", "N", "of initial values, shuffling and dropout", &seed);
  command_line->AddFlag("set", "PATH=VALUE",
                        "sets any field of the configuration, such as --set=optimizer.learning_rate.initial=0.01",
                        &set);
  command_line->AddFlag(
      "at_step", "now",
      "a run that is resumed may have another learning rate, other settings of its optimizer, its clips "
      "or its batch size from the step on at which it stands; the change is recorded",
      &at_step);
}

absl::StatusOr<config::v1::RunSpec> ConfigFlags::Load(FileSystem* fs, std::unique_ptr<ConfigSource>* source) const {
  if (!at_step.empty() && !changes_settings()) {
    return absl::InvalidArgumentError(absl::StrCat("--at_step is ", at_step, ", must be now"));
  }
  std::vector<std::string> overrides = set;
  if (steps) overrides.push_back(absl::StrCat("training.steps=", *steps));
  if (seed) overrides.push_back(absl::StrCat("training.seed=", *seed));
  ASSIGN_OR_RETURN(config::v1::RunSpec loaded, LoadRunSpec(fs, config, overrides, source));
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof directory) == nullptr) {
    return absl::FailedPreconditionError("the working directory is gone");
  }
  ResolvePaths(directory, &loaded);
  return loaded;
}

std::vector<std::string> ConfigFlags::ToWords() const {
  std::vector<std::string> words = {AbsolutePath(config)};
  if (steps) words.push_back(absl::StrCat("--steps=", *steps));
  if (seed) words.push_back(absl::StrCat("--seed=", *seed));
  for (const std::string& override : set) words.push_back(absl::StrCat("--set=", override));
  if (!at_step.empty()) words.push_back(absl::StrCat("--at_step=", at_step));
  return words;
}

std::string AbsolutePath(const std::string& path) {
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof directory) == nullptr) return path;
  return JoinPath(directory, path);
}

}  // namespace lockstep
