#ifndef LOCKSTEP_TRAIN_EVALUATION_RUN_EVALUATOR_H_
#define LOCKSTEP_TRAIN_EVALUATION_RUN_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/evaluation/evaluation.h"
#include "lockstep/worker/evaluation/model_values.h"
#include "lockstep/worker/evaluation/prediction.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// Evaluates checkpoints with the run's model on one split of the run's data. Not thread-safe.
class RunEvaluator {
 public:
  // Creates the model for a split's examples. If null, CreateModel creates it from the configuration.
  using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>(const ExampleSpec& examples)>;
  // Creates an evaluator for a split. `config` must be complete; `fs` must outlive this object. With
  // `for_predictions`, labels are optional and unchecked (DatasetOptions). Errors: those of OpenDataset, CreateModel
  // and make_model.
  static absl::StatusOr<std::unique_ptr<RunEvaluator>> Create(FileSystem* fs, const config::v1::RunSpec& config,
                                                              const std::string& split,
                                                              ValueSource source = ValueSource::kVariables,
                                                              bool for_predictions = false,
                                                              const ModelFactory& make_model = nullptr);

  // Creates an evaluator for the caller's examples instead of a split of the configuration. `split` names them for
  // display. Errors: those of CreateModel and make_model.
  static absl::StatusOr<std::unique_ptr<RunEvaluator>> Create(FileSystem* fs, const config::v1::RunSpec& config,
                                                              const std::string& split,
                                                              std::unique_ptr<Dataset> dataset,
                                                              ValueSource source = ValueSource::kVariables,
                                                              const ModelFactory& make_model = nullptr);

  struct Evaluation {
    std::string checkpoint;
    int64_t step = 0;
    EvaluationResult result;
  };
  // Evaluates a checkpoint. `cancelled`, unless null, is called before each batch; if it returns true, the evaluation
  // ends with Cancelled. Errors: those of BundleReader, LoadModelValues and Evaluate.
  absl::StatusOr<Evaluation> EvaluateCheckpoint(const std::string& prefix, std::function<bool()> cancelled = nullptr);
  // Evaluates a checkpoint with the caller's batch size, and possibly on only some of the batches.
  absl::StatusOr<Evaluation> EvaluateCheckpoint(const std::string& prefix, const EvaluationOptions& options);

  // Writes the model's outputs for each example of the split to `path` (WritePredictions).
  // Errors: those of BundleReader, LoadModelValues and WritePredictions.
  absl::Status PredictCheckpoint(const std::string& prefix, const PredictionOptions& options, const std::string& path);

  const std::string& split() const { return split_; }
  const Dataset& dataset() const { return *dataset_; }
  const Model& model() const { return *model_; }

 private:
  RunEvaluator(FileSystem* fs, const config::v1::RunSpec& config, std::string split, ValueSource source,
               std::unique_ptr<Dataset> dataset, std::unique_ptr<Model> model);

  FileSystem* const fs_;
  const config::v1::RunSpec config_;
  const std::string split_;
  const ValueSource source_;
  const std::unique_ptr<Dataset> dataset_;
  const std::unique_ptr<Model> model_;
};

bool HasSplit(const config::v1::RunSpec& config, const std::string& split);

// Returns the name of the evaluated split: "test" unless the configuration names another.
std::string EvaluationSplit(const config::v1::RunSpec& config);

// Returns text such as "test: 10000 examples: accuracy 0.8845, mean_loss 0.3312".
std::string EvaluationText(const std::string& split, const EvaluationResult& result);

// Returns the confusion matrix as a table, with a row per label and a column per answer. Empty if there is no matrix.
std::string MatrixText(const EvaluationResult& result);

// Returns {"checkpoint": ..., "step": 4000, "split": "test", "examples": 10000, "metrics": {"accuracy": 0.8845, ...}}.
// A confusion matrix is an array of rows under "confusion_matrix". There is no trailing line feed.
std::string EvaluationJson(const std::string& split, const RunEvaluator::Evaluation& evaluation);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_RUN_EVALUATOR_H_
