#include "lockstep/common/config/run_spec.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/override.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/step/training_policy.h"

namespace lockstep {
namespace {

// Replaces every non-empty path with change(path).
template <typename Change>
void ChangePaths(config::v1::RunSpec* config, Change change) {
  const auto replace = [&](std::string* path) {
    if (!path->empty()) *path = std::string(change(*path));
  };
  const int splits = config->input().split_size();
  for (int i = 0; i < splits; ++i) {
    config::v1::InputConfig::Split& split = *config->mutable_input()->mutable_split(i);
    switch (split.source_case()) {
      case config::v1::InputConfig::Split::kIdx:
        replace(split.mutable_idx()->mutable_images());
        replace(split.mutable_idx()->mutable_labels());
        break;
      case config::v1::InputConfig::Split::kCsv:
        for (std::string& file : *split.mutable_csv()->mutable_file()) replace(&file);
        break;
      case config::v1::InputConfig::Split::kLibsvm:
        for (std::string& file : *split.mutable_libsvm()->mutable_file()) replace(&file);
        break;
      case config::v1::InputConfig::Split::kTfrecord:
        for (std::string& file : *split.mutable_tfrecord()->mutable_file()) replace(&file);
        break;
      case config::v1::InputConfig::Split::kNpz:
        replace(split.mutable_npz()->mutable_file());
        break;
      case config::v1::InputConfig::Split::kNpy:
        replace(split.mutable_npy()->mutable_features());
        replace(split.mutable_npy()->mutable_labels());
        replace(split.mutable_npy()->mutable_weights());
        break;
      case config::v1::InputConfig::Split::kImages:
        replace(split.mutable_images()->mutable_folder());
        break;
      case config::v1::InputConfig::Split::kRegistered:
        for (std::string& file : *split.mutable_registered()->mutable_file()) replace(&file);
        break;
      case config::v1::InputConfig::Split::kSynthetic:
      case config::v1::InputConfig::Split::SOURCE_NOT_SET:
        break;
    }
  }
  if (config->has_checkpoint()) replace(config->mutable_checkpoint()->mutable_warm_start());
  if (config->has_evaluation()) replace(config->mutable_evaluation()->mutable_class_name_file());
}

// Returns the number of global batches in an order of `examples` examples, or nullopt if the order has no end. A step
// or a stream takes one global batch at a time.
absl::optional<int64_t> LengthOfOrder(const config::v1::RunSpec& config, int64_t examples) {
  const config::v1::InputConfig& input = config.input();
  if (input.epochs() <= 0) return absl::nullopt;
  const int64_t together = BatchesTogether(config.training()) * input.batch_size();
  if (input.last_batch() == config::v1::InputConfig::DROP) examples -= examples % together;
  // A number of epochs that would overflow counts as endless.
  if (examples > 0 && input.epochs() > std::numeric_limits<int64_t>::max() / examples) return absl::nullopt;
  return input.epochs() * examples / together;
}

}  // namespace

absl::StatusOr<config::v1::RunSpec> LoadRunSpec(FileSystem* fs, const std::string& path,
                                                absl::Span<const std::string> overrides,
                                                std::unique_ptr<ConfigSource>* source) {
  config::v1::RunSpec config;
  auto lines = std::make_unique<ConfigSource>(path, config::v1::RunSpec::descriptor(), overrides);
  ConfigSource* const written = lines.get();
  if (source != nullptr) *source = std::move(lines);
  if (!path.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(fs, path));
    RETURN_IF_ERROR(ParseTextProto(text, path, &config, written->lines()));
    ResolvePaths(Dirname(path), &config);
  }
  for (const std::string& override : overrides) RETURN_IF_ERROR(ApplyOverride(override, &config));
  ApplyDefaults(&config);
  RETURN_IF_ERROR(written->Locate(ValidateRunSpec(config)));
  return config;
}

void ResolvePaths(absl::string_view directory, config::v1::RunSpec* config) {
  ChangePaths(config, [&](const std::string& path) { return JoinPath(directory, path); });
}

std::vector<std::string> InputFilesOf(const config::v1::InputConfig::Split& split) {
  switch (split.source_case()) {
    case config::v1::InputConfig::Split::kIdx:
      return {split.idx().images(), split.idx().labels()};
    case config::v1::InputConfig::Split::kCsv:
      return {split.csv().file().begin(), split.csv().file().end()};
    case config::v1::InputConfig::Split::kLibsvm:
      return {split.libsvm().file().begin(), split.libsvm().file().end()};
    case config::v1::InputConfig::Split::kTfrecord:
      return {split.tfrecord().file().begin(), split.tfrecord().file().end()};
    case config::v1::InputConfig::Split::kNpz:
      return {split.npz().file()};
    case config::v1::InputConfig::Split::kNpy:
      if (split.npy().weights().empty()) return {split.npy().features(), split.npy().labels()};
      return {split.npy().features(), split.npy().labels(), split.npy().weights()};
    case config::v1::InputConfig::Split::kImages:
      return {split.images().folder()};
    case config::v1::InputConfig::Split::kRegistered:
      return {split.registered().file().begin(), split.registered().file().end()};
    default:
      return {};
  }
}

std::vector<std::string> SplitNames(const config::v1::InputConfig& input) {
  std::vector<std::string> names;
  for (const config::v1::InputConfig::Split& split : input.split()) names.push_back(split.name());
  if (input.test_fraction() > 0) names.push_back("test");
  return names;
}

absl::optional<int64_t> StepsOfInput(const config::v1::RunSpec& config, int64_t examples) {
  // The number of streams is not known until the workers have joined.
  return ReadsStreams(config.training()) ? absl::nullopt : LengthOfOrder(config, examples);
}

absl::optional<int64_t> BatchesOfStream(const config::v1::RunSpec& config, int64_t examples) {
  return ReadsStreams(config.training()) ? LengthOfOrder(config, examples) : absl::nullopt;
}

std::string TrainingLengthText(const config::v1::TrainingConfig& training) {
  if (training.unbounded()) return "steps without a bound";
  if (training.additional_steps() > 0) return absl::StrCat(CountText(training.additional_steps(), "step"), " more");
  return CountText(training.steps(), "step");
}

config::v1::RunSpec WeightsConfig(config::v1::RunSpec config) {
  ApplyDefaults(&config);
  config.mutable_training()->clear_steps();
  config.mutable_training()->clear_additional_steps();
  config.mutable_training()->clear_unbounded();
  config.mutable_training()->clear_end_on_non_finite();
  config.mutable_training()->clear_skip_non_finite();  // a run without it would not have the steps that it affects
  config.mutable_training()->clear_record_order();
  config.mutable_input()->clear_epochs();
  config.mutable_training()->clear_startup_delay_steps();
  if (config.training().has_deterministic()) config.mutable_training()->clear_policy();  // means the same as no policy
  config::v1::CheckpointConfig warm_start;
  if (!config.checkpoint().warm_start().empty()) {
    warm_start.set_warm_start(config.checkpoint().warm_start());
    if (config.checkpoint().has_warm_start_variables()) {
      *warm_start.mutable_warm_start_variables() = config.checkpoint().warm_start_variables();
    }
    *config.mutable_checkpoint() = std::move(warm_start);
  } else {
    config.clear_checkpoint();
  }
  config.clear_summary();
  config.clear_evaluation();
  config.clear_cluster();
  config.clear_audit();
  if (config.compression().ByteSizeLong() == 0) config.clear_compression();  // means the same as no compression
  auto* splits = config.mutable_input()->mutable_split();
  for (int i = splits->size() - 1; i >= 0; --i) {
    if (splits->Get(i).name() != "train") splits->DeleteSubrange(i, 1);
  }
  ChangePaths(&config, [](const std::string& path) { return Basename(path); });
  return config;
}

}  // namespace lockstep
