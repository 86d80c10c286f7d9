#include "lockstep/train/evaluation/run_evaluator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/report/json_text.h"
#include "lockstep/common/report/text_table.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/evaluation/checkpoint_evaluation.h"
#include "lockstep/worker/evaluation/metrics.h"
#include "lockstep/worker/evaluation/model_values.h"
#include "lockstep/worker/evaluation/prediction.h"
#include "lockstep/worker/nn/graph/graph_model.h"

namespace lockstep {
namespace {

std::string MatrixJson(const MetricValue& metric) {
  std::vector<std::string> rows;
  for (int64_t i = 0; i < metric.classes; ++i) {
    const auto begin = metric.matrix.begin() + i * metric.classes;
    rows.push_back(absl::StrCat("[", absl::StrJoin(begin, begin + metric.classes, ", "), "]"));
  }
  return absl::StrCat("[", absl::StrJoin(rows, ", "), "]");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunEvaluator>> RunEvaluator::Create(FileSystem* fs, const config::v1::RunSpec& config,
                                                                   const std::string& split, ValueSource source,
                                                                   bool for_predictions,
                                                                   const ModelFactory& make_model) {
  DatasetOptions dataset_options;
  dataset_options.labels_optional = for_predictions;
  dataset_options.labels_unchecked = for_predictions;
  dataset_options.fs = fs;
  ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset,
                   OpenDataset(config.input(), split, config.training().seed(), dataset_options));
  return Create(fs, config, split, std::move(dataset), source, make_model);
}

absl::StatusOr<std::unique_ptr<RunEvaluator>> RunEvaluator::Create(FileSystem* fs, const config::v1::RunSpec& config,
                                                                   const std::string& split,
                                                                   std::unique_ptr<Dataset> dataset, ValueSource source,
                                                                   const ModelFactory& make_model) {
  ModelOptions model_options;
  model_options.compute_threads = static_cast<int>(std::max<int64_t>(1, config.cluster().compute_threads()));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, make_model
                                                     ? make_model(dataset->spec())
                                                     : CreateModel(config.model(), dataset->spec(), model_options));
  return std::unique_ptr<RunEvaluator>(
      new RunEvaluator(fs, config, split, source, std::move(dataset), std::move(model)));
}

RunEvaluator::RunEvaluator(FileSystem* fs, const config::v1::RunSpec& config, std::string split, ValueSource source,
                           std::unique_ptr<Dataset> dataset, std::unique_ptr<Model> model)
    : fs_(fs),
      config_(config),
      split_(std::move(split)),
      source_(source),
      dataset_(std::move(dataset)),
      model_(std::move(model)) {}

absl::StatusOr<RunEvaluator::Evaluation> RunEvaluator::EvaluateCheckpoint(const std::string& prefix,
                                                                          std::function<bool()> cancelled) {
  EvaluationOptions options;
  options.cancelled = std::move(cancelled);
  return EvaluateCheckpoint(prefix, options);
}

absl::StatusOr<RunEvaluator::Evaluation> RunEvaluator::EvaluateCheckpoint(const std::string& prefix,
                                                                          const EvaluationOptions& options) {
  const std::vector<std::string> names(config_.evaluation().metric().begin(), config_.evaluation().metric().end());
  ASSIGN_OR_RETURN(auto metrics, CreateMetrics(names, config_.model(), dataset_->spec()));
  ASSIGN_OR_RETURN(
      CheckpointEvaluation evaluation,
      ::lockstep::EvaluateCheckpoint(fs_, prefix, model_.get(), *dataset_, std::move(metrics), options, source_));
  return Evaluation{prefix, evaluation.step, std::move(evaluation.result)};
}

absl::Status RunEvaluator::PredictCheckpoint(const std::string& prefix, const PredictionOptions& options,
                                             const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(fs_, prefix));
  ASSIGN_OR_RETURN(const ModelValues values, LoadModelValues(*reader, model_->spec(), source_));
  return WritePredictions(model_.get(), values.view(), *dataset_, options, fs_, path);
}

bool HasSplit(const config::v1::RunSpec& config, const std::string& split) {
  const std::vector<std::string> names = SplitNames(config.input());
  return std::find(names.begin(), names.end(), split) != names.end();
}

std::string EvaluationSplit(const config::v1::RunSpec& config) {
  return config.evaluation().split().empty() ? "test" : config.evaluation().split();
}

std::string EvaluationText(const std::string& split, const EvaluationResult& result) {
  return absl::StrCat(split, ": ", result.ToString());
}

std::string MatrixText(const EvaluationResult& result) {
  const MetricValue* matrix = result.Find("confusion_matrix");
  if (matrix == nullptr) return "";
  std::vector<TextTable::Column> columns = {{"label", TextTable::kRight}};
  for (int64_t answer = 0; answer < matrix->classes; ++answer) {
    columns.push_back({absl::StrCat("as ", answer), TextTable::kRight});
  }
  TextTable table(std::move(columns));
  for (int64_t label = 0; label < matrix->classes; ++label) {
    std::vector<std::string> cells = {absl::StrCat(label)};
    for (int64_t answer = 0; answer < matrix->classes; ++answer) {
      cells.push_back(absl::StrCat(matrix->matrix[label * matrix->classes + answer]));
    }
    table.AddRow(std::move(cells));
  }
  return table.Render();
}

std::string EvaluationJson(const std::string& split, const RunEvaluator::Evaluation& evaluation) {
  std::vector<std::string> metrics;
  std::string matrix;
  for (const MetricValue& metric : evaluation.result.metrics) {
    if (!metric.matrix.empty()) {
      matrix = absl::StrCat(", \"confusion_matrix\": ", MatrixJson(metric));
    } else {
      metrics.push_back(absl::StrCat(JsonString(metric.name), ": ", JsonNumber(metric.value)));
    }
  }
  return absl::StrCat("{\"checkpoint\": ", JsonString(evaluation.checkpoint), ", \"step\": ", evaluation.step,
                      ", \"split\": ", JsonString(split), ", \"examples\": ", evaluation.result.examples,
                      ", \"metrics\": {", absl::StrJoin(metrics, ", "), "}", matrix, "}");
}

}  // namespace lockstep
