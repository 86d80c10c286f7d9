#include "lockstep/train/graph_actions/evaluate.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/train/evaluation/run_evaluator.h"
#include "lockstep/train/events/event_writer_cache.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/evaluation/metrics.h"

namespace lockstep::train::graph_actions {
namespace {

std::string SplitOf(const EvaluateOptions& options) {
  return options.split.empty() ? EvaluationSplit(options.op.spec) : options.split;
}

bool HasInput(const EvaluateOptions& options) { return options.feed_fn || HasSplit(options.op.spec, SplitOf(options)); }

absl::Status CheckOptions(const EvaluateOptions& options) {
  if (options.output_dir.empty()) {
    return absl::InvalidArgumentError("output_dir: is empty; it is where the results are written");
  }
  if (options.max_steps && *options.max_steps < 0) {
    return absl::InvalidArgumentError(absl::StrCat("max_steps: ", *options.max_steps, ", must be 0 or more"));
  }
  if (options.log_every_steps < 1) {
    return absl::InvalidArgumentError(absl::StrCat("log_every_steps: ", options.log_every_steps, ", must be above 0"));
  }
  if (options.batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch_size: ", options.batch_size, ", must be above 0"));
  }
  if (!options.split.empty() && !HasSplit(options.op.spec, options.split)) {
    return absl::InvalidArgumentError(absl::StrCat("split: the configuration has no split \"", options.split, "\""));
  }
  if (!HasInput(options) && !options.max_steps) {
    return absl::InvalidArgumentError("max_steps: must be given where there is neither a feed_fn nor a split");
  }
  return absl::OkStatus();
}

// The batches of an evaluation, in order, and the specification of its examples.
class EvaluationInput {
 public:
  static absl::StatusOr<std::unique_ptr<EvaluationInput>> Open(const EvaluateOptions& options) {
    std::unique_ptr<EvaluationInput> input(new EvaluationInput(options));
    const config::v1::RunSpec& spec = options.op.spec;
    // The metrics need the split even if batches are fed.
    if (HasSplit(spec, SplitOf(options))) {
      ASSIGN_OR_RETURN(input->dataset_,
                       OpenDataset(spec.input(), SplitOf(options), spec.training().seed(), DatasetOptions()));
    }
    return input;
  }

  // Returns null if there is no split.
  const ExampleSpec* examples() const { return dataset_ == nullptr ? nullptr : &dataset_->spec(); }

  // Returns the next batch, or null if there is no input. Returns OutOfRange at the end of the input.
  absl::StatusOr<const Batch*> Next() {
    const int64_t step = steps_++;
    if (options_.feed_fn) {
      ASSIGN_OR_RETURN(batch_, options_.feed_fn(step));
      return &batch_;
    }
    if (dataset_ == nullptr) return nullptr;
    const int64_t first = step * options_.batch_size;
    if (first >= dataset_->size()) return absl::OutOfRangeError("the split has ended");
    std::vector<int64_t> indices(std::min(options_.batch_size, dataset_->size() - first));
    std::iota(indices.begin(), indices.end(), first);
    RETURN_IF_ERROR(dataset_->Read(indices, &batch_));
    return &batch_;
  }

 private:
  explicit EvaluationInput(const EvaluateOptions& options) : options_(options) {}

  const EvaluateOptions& options_;
  std::unique_ptr<Dataset> dataset_;
  int64_t steps_ = 0;
  Batch batch_;
};

using Metrics = std::vector<std::unique_ptr<Metric>>;

absl::StatusOr<Metrics> MakeMetrics(const EvaluateOptions& options, const ExampleSpec* examples) {
  const auto& configured = options.op.spec.evaluation().metric();
  std::vector<std::string> names = options.metrics;
  if (names.empty()) {
    if (!options.eval_dict.empty() || examples == nullptr) return Metrics();
    names.assign(configured.begin(), configured.end());
  }
  if (examples == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("metrics: the configuration has no split \"", SplitOf(options),
                                                   "\" to say what examples look like"));
  }
  return CreateMetrics(names, options.op.spec.model(), *examples);
}

// The steps of one evaluation.
class Evaluation {
 public:
  Evaluation(const EvaluateOptions& options, RestoredModel* model, EvaluationInput* input, Metrics metrics)
      : options_(options), model_(*model), input_(*input), metrics_(std::move(metrics)) {}

  absl::Status Run() {
    while (!options_.max_steps || steps_ < *options_.max_steps) {
      const absl::Time began = options_.clock->Now();
      const absl::StatusOr<const Batch*> batch = input_.Next();
      if (absl::IsOutOfRange(batch.status())) break;
      RETURN_IF_ERROR(batch.status());
      batch_ = *batch;
      ++steps_;
      RETURN_IF_ERROR(Update());
      if (!options_.update_op) RETURN_IF_ERROR(ComputeDictionary());
      if (steps_ % options_.log_every_steps == 0) RETURN_IF_ERROR(Log(options_.clock->Now() - began));
    }
    return Compute();
  }

  const std::map<std::string, EvalValue>& results() const { return results_; }

 private:
  absl::Status Update() {
    if (options_.update_op) RETURN_IF_ERROR(options_.update_op(model_, batch_));
    if (metrics_.empty() || batch_ == nullptr) return absl::OkStatus();
    Model::Evaluation evaluation;
    if (std::any_of(metrics_.begin(), metrics_.end(), [](const auto& metric) { return metric->needs_loss(); })) {
      ASSIGN_OR_RETURN(evaluation, model_.PredictAndEvaluateLoss(*batch_));
    } else {
      ASSIGN_OR_RETURN(evaluation.predictions, model_.Predict(*batch_));
      evaluation.loss = std::numeric_limits<float>::quiet_NaN();
    }
    const MetricInput input{*batch_, evaluation.predictions, evaluation.loss};
    for (const auto& metric : metrics_) RETURN_IF_ERROR(metric->Update(input));
    return absl::OkStatus();
  }

  // Computes all results for the steps so far.
  absl::Status Compute() {
    RETURN_IF_ERROR(ComputeDictionary());
    for (const auto& metric : metrics_) {
      const MetricValue value = metric->Result();
      results_[value.name] = value.value;
    }
    return absl::OkStatus();
  }

  // Computes the results of eval_dict unless this step's results have already been computed.
  absl::Status ComputeDictionary() {
    if (computed_step_ == steps_) return absl::OkStatus();
    for (const auto& [name, function] : options_.eval_dict) {
      absl::StatusOr<EvalValue> value = function(model_, batch_);
      if (!value.ok()) {
        return absl::Status(value.status().code(), absl::StrCat("eval_dict ", name, ": ", value.status().message()));
      }
      results_[name] = *std::move(value);
    }
    computed_step_ = steps_;
    return absl::OkStatus();
  }

  absl::Status Log(absl::Duration took) {
    RETURN_IF_ERROR(Compute());
    std::vector<std::string> texts;
    for (const auto& [name, value] : results_) {
      std::string text = "none";
      if (value) {
        const double* const number = std::get_if<double>(&*value);
        text = number != nullptr ? absl::StrCat(*number) : std::get<std::string>(*value);
      }
      texts.push_back(absl::StrCat(name, " = ", text));
    }
    const std::string line = absl::StrFormat("Results after %d steps (%.3f sec/batch): %s.", steps_,
                                             absl::ToDoubleSeconds(took), absl::StrJoin(texts, ", "));
    if (options_.log) {
      options_.log(line);
    } else {
      LOG(INFO) << line;
    }
    return absl::OkStatus();
  }

  const EvaluateOptions& options_;
  RestoredModel& model_;
  EvaluationInput& input_;
  const Metrics metrics_;
  const Batch* batch_ = nullptr;
  int64_t steps_ = 0;
  int64_t computed_step_ = -1;
  std::map<std::string, EvalValue> results_;
};

absl::Status WriteResults(const EvaluateOptions& options, const EvaluateResult& result) {
  SummaryBuilder summary;
  for (const auto& [name, value] : result.results) {
    if (!value) continue;
    if (const double* const number = std::get_if<double>(&*value)) {
      summary.AddScalar(name, static_cast<float>(*number));
    } else {
      LOG(WARNING) << "the result " << name << " is no number: it is not written as a summary";
    }
  }
  ASSIGN_OR_RETURN(const auto events,
                   EventWriterCache::OfProcess()->Get(options.fs, options.clock, options.output_dir));
  events->Write(summary.Build(result.global_step));
  return events->Flush();
}

}  // namespace

absl::StatusOr<EvaluateResult> Evaluate(const EvaluateOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const auto input, EvaluationInput::Open(options));
  ASSIGN_OR_RETURN(const auto model,
                   RestoredModel::Create(options.op, options.checkpoint_path, options.fs, input->examples()));
  ASSIGN_OR_RETURN(Metrics metrics, MakeMetrics(options, input->examples()));
  Evaluation evaluation(options, model.get(), input.get(), std::move(metrics));
  RETURN_IF_ERROR(evaluation.Run());
  EvaluateResult result{evaluation.results(), model->global_step()};
  RETURN_IF_ERROR(WriteResults(options, result));
  return result;
}

}  // namespace lockstep::train::graph_actions
