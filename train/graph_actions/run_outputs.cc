#include "lockstep/train/graph_actions/run_outputs.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/worker/data/batch_source.h"

namespace lockstep::train::graph_actions {
namespace {

absl::Status CheckFed(absl::string_view what, const Batch* batch) {
  if (batch != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("feed: there is none, and ", what, " need a batch"));
}

// Returns the specification of a batch's examples. The batch may have no labels, or no examples of the highest classes.
ExampleSpec ExamplesOf(const Batch& batch) {
  ExampleSpec examples;
  const auto shape_of = [](const Tensor& tensor) { return Shape::Create(tensor.shape().dims().subspan(1)).value(); };
  examples.features_dtype = batch.features.dtype();
  examples.features_shape = shape_of(batch.features);
  examples.classes = 1;
  if (batch.labels.num_elements() == 0) return examples;
  examples.labels_dtype = batch.labels.dtype();
  examples.labels_shape = shape_of(batch.labels);
  if (examples.labels_dtype == v1::DT_INT32) {
    for (const int32_t label : batch.labels.flat<int32_t>())
      examples.classes = std::max(examples.classes, label + int64_t{1});
  } else {
    examples.classes = 0;
  }
  return examples;
}

absl::Span<const Batch> FeedsOf(const Batch* feed) { return absl::MakeConstSpan(feed, feed == nullptr ? 0 : 1); }

absl::Status CheckOutputs(const Outputs& outputs) {
  if (!outputs.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("output_dict: is empty, there is nothing to compute");
}

// Creates the model for the fed batches or, without a feed, for the training data.
absl::StatusOr<std::unique_ptr<RestoredModel>> Restore(const RunOptions& options, const Outputs& outputs,
                                                       absl::Span<const Batch> feeds) {
  RETURN_IF_ERROR(CheckOutputs(outputs));
  if (feeds.empty()) return RestoredModel::Create(options.op, options.checkpoint_path, options.fs);
  ExampleSpec examples;
  for (const Batch& feed : feeds) {
    const bool has_labels = feed.labels.num_elements() > 0;
    if (feed.features.shape().rank() == 0 || (has_labels && feed.labels.shape().rank() == 0)) {
      return absl::InvalidArgumentError(
          "feed: features and labels must have the number of examples as first dimension");
    }
    ExampleSpec fed = ExamplesOf(feed);
    fed.classes = std::max(fed.classes, examples.classes);
    examples = std::move(fed);
  }
  return RestoredModel::Create(options.op, options.checkpoint_path, options.fs, &examples);
}

absl::StatusOr<OutputValues> Compute(const Outputs& outputs, const Batch* feed, RestoredModel* model) {
  OutputValues values;
  for (const auto& [name, output] : outputs) {
    absl::StatusOr<Tensor> value = output(*model, feed);
    if (!value.ok()) {
      return absl::Status(value.status().code(), absl::StrCat("output ", name, ": ", value.status().message()));
    }
    values.emplace(name, *std::move(value));
  }
  return values;
}

}  // namespace

OutputFunction Predictions() {
  return [](RestoredModel& model, const Batch* batch) -> absl::StatusOr<Tensor> {
    RETURN_IF_ERROR(CheckFed("predictions", batch));
    return model.Predict(*batch);
  };
}

OutputFunction Loss() {
  return [](RestoredModel& model, const Batch* batch) -> absl::StatusOr<Tensor> {
    RETURN_IF_ERROR(CheckFed("losses", batch));
    ASSIGN_OR_RETURN(const float loss, model.EvaluateLoss(*batch));
    Tensor tensor(v1::DT_FLOAT, Shape());
    tensor.flat<float>()[0] = loss;
    return tensor;
  };
}

OutputFunction VariableValue(std::string name) {
  return [name = std::move(name)](RestoredModel& model, const Batch*) { return model.Variable(name); };
}

absl::StatusOr<std::vector<OutputValues>> RunN(const RunOptions& options, const Outputs& outputs, const Batch* feed,
                                               int64_t n) {
  if (n < 0) return absl::InvalidArgumentError(absl::StrCat("n: ", n, ", must be 0 or more"));
  ASSIGN_OR_RETURN(const auto model, Restore(options, outputs, FeedsOf(feed)));
  std::vector<OutputValues> results;
  for (int64_t i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(OutputValues values, Compute(outputs, feed, model.get()));
    results.push_back(std::move(values));
  }
  return results;
}

absl::Status RunFeedsIter(const RunOptions& options, const Outputs& outputs,
                          const std::function<absl::StatusOr<Batch>()>& next,
                          const std::function<absl::Status(OutputValues)>& consumer) {
  RETURN_IF_ERROR(CheckOutputs(outputs));
  std::unique_ptr<RestoredModel> model;
  while (true) {
    const absl::StatusOr<Batch> feed = next();
    if (absl::IsOutOfRange(feed.status())) return absl::OkStatus();
    RETURN_IF_ERROR(feed.status());
    if (model == nullptr) {
      ASSIGN_OR_RETURN(model, Restore(options, outputs, FeedsOf(&*feed)));
    }
    ASSIGN_OR_RETURN(OutputValues values, Compute(outputs, &*feed, model.get()));
    RETURN_IF_ERROR(consumer(std::move(values)));
  }
}

absl::StatusOr<std::vector<OutputValues>> RunFeeds(const RunOptions& options, const Outputs& outputs,
                                                   absl::Span<const Batch> feeds) {
  ASSIGN_OR_RETURN(const auto model, Restore(options, outputs, feeds));
  std::vector<OutputValues> results;
  for (const Batch& feed : feeds) {
    ASSIGN_OR_RETURN(OutputValues values, Compute(outputs, &feed, model.get()));
    results.push_back(std::move(values));
  }
  return results;
}

absl::StatusOr<OutputValues> Infer(const RunOptions& options, const Outputs& outputs, const Batch* feed) {
  ASSIGN_OR_RETURN(const auto model, Restore(options, outputs, FeedsOf(feed)));
  return Compute(outputs, feed, model.get());
}

}  // namespace lockstep::train::graph_actions
