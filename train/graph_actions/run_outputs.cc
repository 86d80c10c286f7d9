#include "lockstep/train/graph_actions/run_outputs.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train::graph_actions {
namespace {

absl::Status CheckFed(absl::string_view what, const Batch* batch) {
  if (batch != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("feed: there is none, and ", what, " need a batch"));
}

absl::StatusOr<std::unique_ptr<RestoredModel>> Restore(const RunOptions& options, const Outputs& outputs) {
  if (outputs.empty()) return absl::InvalidArgumentError("output_dict: is empty, there is nothing to compute");
  return RestoredModel::Create(options.op, options.checkpoint_path, options.fs);
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
  ASSIGN_OR_RETURN(const auto model, Restore(options, outputs));
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
  ASSIGN_OR_RETURN(const auto model, Restore(options, outputs));
  while (true) {
    const absl::StatusOr<Batch> feed = next();
    if (absl::IsOutOfRange(feed.status())) return absl::OkStatus();
    RETURN_IF_ERROR(feed.status());
    ASSIGN_OR_RETURN(OutputValues values, Compute(outputs, &*feed, model.get()));
    RETURN_IF_ERROR(consumer(std::move(values)));
  }
}

absl::StatusOr<std::vector<OutputValues>> RunFeeds(const RunOptions& options, const Outputs& outputs,
                                                   absl::Span<const Batch> feeds) {
  ASSIGN_OR_RETURN(const auto model, Restore(options, outputs));
  std::vector<OutputValues> results;
  for (const Batch& feed : feeds) {
    ASSIGN_OR_RETURN(OutputValues values, Compute(outputs, &feed, model.get()));
    results.push_back(std::move(values));
  }
  return results;
}

absl::StatusOr<OutputValues> Infer(const RunOptions& options, const Outputs& outputs, const Batch* feed) {
  ASSIGN_OR_RETURN(const auto model, Restore(options, outputs));
  return Compute(outputs, feed, model.get());
}

}  // namespace lockstep::train::graph_actions
