#ifndef LOCKSTEP_COMMON_CONFIG_RUN_SPEC_H_
#define LOCKSTEP_COMMON_CONFIG_RUN_SPEC_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// Reads a configuration in text format, makes its paths relative to the file's directory (ResolvePaths), applies
// the overrides in order (common/config/text/override.h; paths in them stay as they are, relative to the working
// directory), writes the defaults (ApplyDefaults) and checks the whole (ValidateRunSpec).
// An empty `path` starts from an empty configuration. `source`, which may be null, is set, also when that fails.
// Errors: those of the file system; InvalidArgument with one line for each problem, with its place in the file.
absl::StatusOr<config::v1::RunSpec> LoadRunSpec(FileSystem* fs, const std::string& path,
                                                absl::Span<const std::string> overrides,
                                                std::unique_ptr<ConfigSource>* source = nullptr);

// Puts `directory` before every relative path: data files and the checkpoint to start from. Give an absolute
// directory where the configuration will be used by processes with other working directories.
void ResolvePaths(absl::string_view directory, config::v1::RunSpec* config);

// How long the run is, for people: "1,000 steps", "50 steps more", "steps without a bound".
std::string TrainingLengthText(const config::v1::TrainingConfig& training);

// What the weights at a given step depend on, complete with its defaults: two configurations with equal answers train
// to the same bits. How long the run is and how it is carried out (training.steps, additional_steps, unbounded,
// startup_delay_steps, input.epochs, checkpoint except for warm_start, summary, evaluation, cluster, audit, splits
// other than "train") are left out. Of a file's path only the name is kept, so that data may move to another directory.
config::v1::RunSpec WeightsConfig(config::v1::RunSpec config);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_RUN_SPEC_H_
