#ifndef LOCKSTEP_COMMON_CONFIG_CONFIG_FLAGS_H_
#define LOCKSTEP_COMMON_CONFIG_CONFIG_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// The flags from which every program that starts a run takes its configuration: CONFIG, --steps, --seed and --set.
struct ConfigFlags {
  std::string config;
  absl::optional<int64_t> steps;
  absl::optional<uint64_t> seed;
  std::vector<std::string> set;
  // If "now", a resumed run may use different settings from its current step on.
  std::string at_step;
  bool changes_settings() const { return at_step == "now"; }

  // Declares the flags. This object must exist until they have been parsed. If CONFIG is optional and absent, `config`
  // stays empty.
  void Declare(CommandLine* command_line, CommandLine::Presence presence = CommandLine::kRequired);

  // Loads the configuration and makes its file paths absolute, because processes with other working directories read it
  // too. Errors: any of LoadRunSpec; InvalidArgument for an --at_step other than "now"; FailedPrecondition if the
  // working directory is gone. `source`, which may be null, receives the places where the fields were written.
  absl::StatusOr<config::v1::RunSpec> Load(FileSystem* fs, std::unique_ptr<ConfigSource>* source = nullptr) const;

  // Returns the arguments that give another program the same configuration.
  std::vector<std::string> ToWords() const;
};

// Resolves `path` relative to the working directory.
std::string AbsolutePath(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_CONFIG_FLAGS_H_
