#include "common/config/run_config.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/config/defaults.h"
#include "common/config/override.h"
#include "common/config/text_proto.h"
#include "common/config/validation.h"

namespace lockstep {
namespace {

// Replaces every path that is not empty by change(path).
template <typename Change>
void ChangePaths(RunConfig* config, Change change) {
  const auto replace = [&](std::string* path) {
    if (!path->empty()) *path = std::string(change(*path));
  };
  const int splits = config->input().split_size();
  for (int i = 0; i < splits; ++i) {
    InputConfig::Split& split = *config->mutable_input()->mutable_split(i);
    switch (split.source_case()) {
      case InputConfig::Split::kIdx:
        replace(split.mutable_idx()->mutable_images());
        replace(split.mutable_idx()->mutable_labels());
        break;
      case InputConfig::Split::kCsv:
        replace(split.mutable_csv()->mutable_file());
        break;
      case InputConfig::Split::kLibsvm:
        replace(split.mutable_libsvm()->mutable_file());
        break;
      case InputConfig::Split::kTfrecord:
        for (std::string& file : *split.mutable_tfrecord()->mutable_file()) replace(&file);
        break;
      case InputConfig::Split::kSynthetic:
      case InputConfig::Split::SOURCE_NOT_SET:
        break;
    }
  }
  if (config->has_checkpoint()) replace(config->mutable_checkpoint()->mutable_warm_start());
}

}  // namespace

absl::StatusOr<RunConfig> LoadRunConfig(FileSystem* fs, const std::string& path,
                                        absl::Span<const std::string> overrides,
                                        std::unique_ptr<ConfigSource>* source) {
  RunConfig config;
  auto lines = std::make_unique<ConfigSource>(path, RunConfig::descriptor(), overrides);
  ConfigSource* const written = lines.get();
  if (source != nullptr) *source = std::move(lines);
  if (!path.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(fs, path));
    RETURN_IF_ERROR(ParseTextProto(text, path, &config, written->lines()));
    ResolvePaths(Dirname(path), &config);
  }
  for (const std::string& override : overrides) RETURN_IF_ERROR(ApplyOverride(override, &config));
  ApplyDefaults(&config);
  RETURN_IF_ERROR(written->Locate(ValidateRunConfig(config)));
  return config;
}

void ResolvePaths(absl::string_view directory, RunConfig* config) {
  ChangePaths(config, [&](const std::string& path) { return JoinPath(directory, path); });
}

RunConfig WeightsConfig(RunConfig config) {
  ApplyDefaults(&config);
  config.mutable_training()->clear_steps();
  config.mutable_training()->clear_startup_delay_steps();
  const std::string warm_start = config.checkpoint().warm_start();
  config.clear_checkpoint();
  if (!warm_start.empty()) config.mutable_checkpoint()->set_warm_start(warm_start);
  config.clear_summary();
  config.clear_evaluation();
  config.clear_cluster();
  if (config.compression().ByteSizeLong() == 0) config.clear_compression();  // says as much as none
  auto* splits = config.mutable_input()->mutable_split();
  for (int i = splits->size() - 1; i >= 0; --i) {
    if (splits->Get(i).name() != "train") splits->DeleteSubrange(i, 1);
  }
  ChangePaths(&config, [](const std::string& path) { return Basename(path); });
  return config;
}

}  // namespace lockstep
