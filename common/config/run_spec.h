#ifndef LOCKSTEP_COMMON_CONFIG_RUN_SPEC_H_
#define LOCKSTEP_COMMON_CONFIG_RUN_SPEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// Loads a configuration: reads it in text format, makes its paths relative to the file's directory (ResolvePaths),
// applies the overrides in order (common/config/text/override.h; their paths stay relative to the working directory),
// writes the defaults (ApplyDefaults) and validates the result (ValidateRunSpec). If `path` is empty, starts from an
// empty configuration. `source`, which may be null, is set even on failure. Errors: file system errors; InvalidArgument
// with one line per problem and its place in the file.
absl::StatusOr<config::v1::RunSpec> LoadRunSpec(FileSystem* fs, const std::string& path,
                                                absl::Span<const std::string> overrides,
                                                std::unique_ptr<ConfigSource>* source = nullptr);

// Prefixes every relative path of data files, and of the checkpoint to start from, with `directory`. Pass an absolute
// directory if processes with different working directories will use the configuration.
void ResolvePaths(absl::string_view directory, config::v1::RunSpec* config);

// Returns the names and patterns of a split's files.
std::vector<std::string> InputFilesOf(const config::v1::InputConfig::Split& split);

// Returns the names of the configured splits, and "test" if test_fraction creates it.
std::vector<std::string> SplitNames(const config::v1::InputConfig& input);

// Returns the number of steps before an input of `examples` examples ends. Returns nullopt if it has no end
// (input.epochs is 0), or if each worker reads its own stream, because the configuration does not specify the number of
// workers.
absl::optional<int64_t> StepsOfInput(const config::v1::RunSpec& config, int64_t examples);
// Returns the number of batches before a worker's stream ends; nullopt if it has no end, or if all workers read one
// stream.
absl::optional<int64_t> BatchesOfStream(const config::v1::RunSpec& config, int64_t examples);

// Describes the run's length for users: "1,000 steps", "50 steps more", "steps without a bound".
std::string TrainingLengthText(const config::v1::TrainingConfig& training);

// Returns the part of the configuration that determines the weights at a given step, including defaults: configurations
// for which this part is equal train to the same bits. Omits the run's length and the way it is carried out
// (training.steps, additional_steps, unbounded, end_on_non_finite, skip_non_finite, startup_delay_steps, record_order,
// input.epochs, checkpoint except for warm_start, summary, evaluation, cluster, audit, splits other than "train"). Of a
// file's path, keeps only the name, so that data may move to another directory.
config::v1::RunSpec WeightsConfig(config::v1::RunSpec config);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_RUN_SPEC_H_
