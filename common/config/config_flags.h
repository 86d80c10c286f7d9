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

// CONFIG, --steps, --seed and --set: the configuration of a run, as every program that starts one takes it.
struct ConfigFlags {
  std::string config;
  absl::optional<int64_t> steps;
  absl::optional<uint64_t> seed;
  std::vector<std::string> set;
  // "now": a run that is resumed may have other settings from its present step on.
  std::string at_step;
  bool changes_settings() const { return at_step == "now"; }

  // This object must outlive the parsing.
  void Declare(CommandLine* command_line);

  // The configuration, its files named by absolute paths: processes with other working directories read it, too.
  // Errors: those of LoadRunSpec; InvalidArgument for an --at_step that is not "now"; FailedPrecondition when the
  // working directory is gone. `source`, which may be null, is filled with the places where its fields were written.
  absl::StatusOr<config::v1::RunSpec> Load(FileSystem* fs, std::unique_ptr<ConfigSource>* source = nullptr) const;

  // The arguments that give another program the same configuration.
  std::vector<std::string> ToWords() const;
};

// Relative to the working directory.
std::string AbsolutePath(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_CONFIG_FLAGS_H_
