#ifndef LOCKSTEP_CLI_CONFIG_FLAGS_H_
#define LOCKSTEP_CLI_CONFIG_FLAGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/command_line.h"
#include "common/config/config_source.h"
#include "common/io/file_system.h"
#include "proto/config.pb.h"

namespace lockstep {

// CONFIG, --steps, --seed and --set, as several commands take them.
struct ConfigFlags {
  std::string config;
  absl::optional<int64_t> steps;
  absl::optional<uint64_t> seed;
  std::vector<std::string> set;

  // This object must outlive the parsing.
  void Declare(CommandLine* command_line);

  // The configuration, its files named by absolute paths. Errors: those of LoadRunConfig.
  // `source`, which may be null, learns where its fields were written.
  absl::StatusOr<RunConfig> Load(FileSystem* fs, std::unique_ptr<ConfigSource>* source = nullptr) const;

  // The words that give another program the same configuration.
  std::vector<std::string> ToWords() const;
};

// Relative to the working directory.
std::string AbsolutePath(const std::string& path);

// Prints "<command>: <line>" for each line of the message; returns `exit_code`.
int PrintError(absl::string_view command, absl::string_view message, int exit_code, std::ostream& err);

// Of a status that came from reading what the user named: what is wrong or absent is 2, damage and the rest are 1.
int ExitCodeOfInput(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_CONFIG_FLAGS_H_
