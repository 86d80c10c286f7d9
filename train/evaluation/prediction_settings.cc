#include "lockstep/train/evaluation/prediction_settings.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_source.h"

namespace lockstep {
namespace {

using config::v1::InputConfig;
using config::v1::Loss;

// Returns the classes of an image folder, or the label categories of a CSV split: those listed in the configuration or,
// if there are none, those of the training split.
std::vector<std::string> LabelCategories(const config::v1::RunSpec& config, const std::string& split_name) {
  const bool is_divided = config.input().test_fraction() > 0 && split_name == "test";
  for (const InputConfig::Split& split : config.input().split()) {
    if (split.name() != (is_divided ? "train" : split_name)) continue;
    if (split.has_images()) return {split.images().class_name().begin(), split.images().class_name().end()};
    for (const InputConfig::Csv::Column& column : split.csv().column()) {
      if (column.type() != InputConfig::Csv::LABEL) continue;
      if (!column.category().empty()) return {column.category().begin(), column.category().end()};
      for (const InputConfig::Csv::Prepared& prepared : split.csv().prepared()) {
        if (prepared.column() == column.name() || prepared.type() == InputConfig::Csv::LABEL)
          return {prepared.category().begin(), prepared.category().end()};
      }
    }
  }
  return {};
}

// Returns the kind of the loss on the last layer's outputs, which are the predictions. Returns KIND_NOT_SET if there is
// no such loss.
Loss::KindCase LossOfOutputs(const config::v1::ModelConfig& model) {
  const std::string last = model.layer().empty() ? "" : model.layer(model.layer_size() - 1).name();
  for (const Loss& loss : model.loss()) {
    if (loss.input().empty() || loss.input() == last) return loss.kind_case();
  }
  return Loss::KIND_NOT_SET;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ClassNames(FileSystem* fs, const config::v1::RunSpec& config,
                                                    const std::string& split) {
  const config::v1::EvaluationConfig& evaluation = config.evaluation();
  std::vector<std::string> names(evaluation.class_name().begin(), evaluation.class_name().end());
  if (!names.empty()) return names;
  if (evaluation.class_name_file().empty()) return LabelCategories(config, split);
  const auto text = ReadFile(fs, evaluation.class_name_file());
  if (!text.ok()) return InField("evaluation.class_name_file", text.status());
  for (const absl::string_view line : absl::StrSplit(absl::StripTrailingAsciiWhitespace(*text), '\n')) {
    names.emplace_back(absl::StripAsciiWhitespace(line));
  }
  return names;
}

absl::StatusOr<PredictionOptions> PredictionOptionsOf(FileSystem* fs, const config::v1::RunSpec& config,
                                                      const std::string& split, bool probabilities) {
  PredictionOptions options;
  const Loss::KindCase loss = LossOfOutputs(config.model());
  options.has_classes = loss == Loss::kSoftmaxCrossEntropy || loss == Loss::kSigmoidCrossEntropy ||
                        loss == Loss::kHinge || loss == Loss::kLogLoss;
  if (loss == Loss::kLogLoss) options.class_threshold = 0.5f;
  ASSIGN_OR_RETURN(options.class_names, ClassNames(fs, config, split));
  // With log_loss, the outputs are already probabilities.
  if (!probabilities || loss == Loss::kLogLoss) return options;
  if (loss != Loss::kSoftmaxCrossEntropy && loss != Loss::kSigmoidCrossEntropy) {
    return absl::InvalidArgumentError(
        "probabilities are those of softmax_cross_entropy or sigmoid_cross_entropy, and the last layer has neither as "
        "its loss");
  }
  options.outputs =
      loss == Loss::kSoftmaxCrossEntropy ? PredictionOptions::Outputs::kSoftmax : PredictionOptions::Outputs::kSigmoid;
  return options;
}

}  // namespace lockstep
