#include "lockstep/train/evaluation/evaluate_values.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/train/evaluation/model_of.h"
#include "lockstep/train/evaluation/run_evaluator.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/evaluation/evaluation.h"
#include "lockstep/worker/evaluation/metrics.h"
#include "lockstep/worker/evaluation/model_values.h"

namespace lockstep::train {
namespace {

// Returns the values in the order of the model's variables.
absl::StatusOr<ModelValues> ModelValuesOf(const ReadResult& values, const v1::ModelSpec& model) {
  std::map<std::string, const Tensor*> by_name;
  for (const NamedTensor& value : values.values) by_name[value.name] = &value.value;
  std::vector<Tensor> tensors;
  for (const v1::VariableSpec& variable : model.variables()) {
    const auto value = by_name.find(variable.name());
    if (value == by_name.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the values of step ", values.global_step, " lack the model's variable ", variable.name()));
    }
    const Tensor& tensor = *value->second;
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Create({variable.shape().data(), static_cast<size_t>(variable.shape_size())}));
    const v1::DataType dtype = VariableType(variable.dtype());
    if (tensor.dtype() != dtype || tensor.shape() != shape) {
      return absl::InvalidArgumentError(absl::StrCat(variable.name(), " is ", NameOf(dtype), shape.ToString(),
                                                     "; the value is ", NameOf(tensor.dtype()),
                                                     tensor.shape().ToString()));
    }
    tensors.push_back(tensor);
  }
  return ModelValues(std::move(tensors));
}

// The data and the model, which are opened only once.
struct Evaluated {
  config::v1::ModelConfig model_config;
  std::vector<std::string> metrics;
  std::unique_ptr<Dataset> dataset;
  std::unique_ptr<Model> model;
};

absl::StatusOr<MetricsOfValues> Measure(const Evaluated& evaluated, const ReadResult& values) {
  ASSIGN_OR_RETURN(const ModelValues model_values, ModelValuesOf(values, evaluated.model->spec()));
  ASSIGN_OR_RETURN(auto metrics, CreateMetrics(evaluated.metrics, evaluated.model_config, evaluated.dataset->spec()));
  ASSIGN_OR_RETURN(const EvaluationResult result,
                   Evaluate(evaluated.model.get(), model_values.view(), *evaluated.dataset, std::move(metrics), {}));
  MetricsOfValues by_name;
  for (const MetricValue& metric : result.metrics) by_name[metric.name] = metric.value;
  return by_name;
}

}  // namespace

absl::StatusOr<std::function<absl::StatusOr<MetricsOfValues>(const ReadResult& values)>> ValuesEvaluator(
    const TrainOp& op, const std::string& split, const std::vector<std::string>& metrics) {
  auto evaluated = std::make_shared<Evaluated>();
  const auto& configured = op.spec.evaluation().metric();
  evaluated->metrics = metrics.empty() ? std::vector<std::string>(configured.begin(), configured.end()) : metrics;
  evaluated->model_config = op.spec.model();
  ASSIGN_OR_RETURN(evaluated->dataset, OpenDataset(op.spec.input(), split.empty() ? EvaluationSplit(op.spec) : split,
                                                   op.spec.training().seed(), DatasetOptions()));
  ASSIGN_OR_RETURN(evaluated->model, MakeModel(op, &evaluated->dataset->spec()));
  // Reports wrong names early.
  RETURN_IF_ERROR(CreateMetrics(evaluated->metrics, evaluated->model_config, evaluated->dataset->spec()).status());
  return [evaluated](const ReadResult& values) { return Measure(*evaluated, values); };
}

absl::StatusOr<MetricsOfValues> EvaluateValues(const TrainOp& op, const ReadResult& values, const std::string& split,
                                               const std::vector<std::string>& metrics) {
  ASSIGN_OR_RETURN(const auto evaluate, ValuesEvaluator(op, split, metrics));
  return evaluate(values);
}

}  // namespace lockstep::train
