#include "lockstep/train/slim/evaluation.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/train/evaluation/model_of.h"
#include "lockstep/train/evaluation/recorded_run.h"
#include "lockstep/train/evaluation/run_watcher.h"
#include "lockstep/train/events/event_writer_cache.h"
#include "lockstep/train/saver/checkpoints.h"

namespace lockstep::train::slim {
namespace {

absl::Status CheckNumEvals(const EvaluateOptions& options) {
  if (!options.num_evals || *options.num_evals > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("num_evals: ", *options.num_evals, ", must be absent or more than 0"));
}

// Evaluates checkpoints of one run. Loads the model and data with the first checkpoint.
class Evaluator {
 public:
  Evaluator(std::string logdir, const EvaluateOptions& options) : logdir_(std::move(logdir)), options_(options) {}

  absl::StatusOr<Evaluation> Evaluate(const std::string& checkpoint) {
    if (evaluator_ == nullptr) RETURN_IF_ERROR(Load(checkpoint));
    EvaluationOptions batches;
    if (options_.num_evals) {
      batches.batch_size = batch_size_;
      batches.max_batches = *options_.num_evals;
    }
    batches.cancelled = [stop = options_.stop] { return stop != nullptr && stop->requested(); };
    ASSIGN_OR_RETURN(Evaluation evaluation, evaluator_->EvaluateCheckpoint(checkpoint, batches));
    RETURN_IF_ERROR(Summarize(evaluation));
    for (const auto& hook : options_.hooks) RETURN_IF_ERROR(hook(evaluation));
    return evaluation;
  }

 private:
  absl::Status Load(const std::string& checkpoint) {
    RecordedRunFlags run;
    run.checkpoint = checkpoint;
    absl::StatusOr<config::v1::RunSpec> config = run.LoadConfig(options_.fs);
    if (absl::IsNotFound(config.status())) {
      return absl::InvalidArgumentError(absl::StrCat("checkpoint_path: ", config.status().message()));
    }
    RETURN_IF_ERROR(config.status());
    if (!options_.eval_op.empty()) {
      *config->mutable_evaluation()->mutable_metric() = {options_.eval_op.begin(), options_.eval_op.end()};
    }
    batch_size_ = config->input().batch_size();
    RunEvaluator::ModelFactory make_model;
    if (options_.op) {
      TrainOp op = *options_.op;
      op.spec = *config;
      make_model = [op = std::move(op)](const ExampleSpec& examples) { return MakeModel(op, &examples); };
    }
    const std::string split = options_.split.empty() ? EvaluationSplit(*config) : options_.split;
    ASSIGN_OR_RETURN(evaluator_, RunEvaluator::Create(options_.fs, *config, split, ValueSource::kVariables,
                                                      /*for_predictions=*/false, make_model));
    return absl::OkStatus();
  }

  absl::Status Summarize(const Evaluation& evaluation) {
    if (logdir_.empty() || options_.summary_op.is_none()) return absl::OkStatus();
    if (events_ == nullptr) {
      ASSIGN_OR_RETURN(events_, EventWriterCache::OfProcess()->Get(options_.fs, options_.clock, logdir_));
    }
    if (options_.summary_op.is_default()) {
      WriteEvaluation(evaluation, events_.get());
      return absl::OkStatus();
    }
    v1::Event event;
    *event.mutable_summary() = (*options_.summary_op.Or(absl::nullopt))(evaluation);
    event.set_step(evaluation.step);
    events_->Write(std::move(event));
    return events_->Flush();
  }

  const std::string logdir_;
  const EvaluateOptions& options_;
  int64_t batch_size_ = 0;
  std::unique_ptr<RunEvaluator> evaluator_;
  std::shared_ptr<EventWriter> events_;
};

}  // namespace

absl::StatusOr<Evaluation> EvaluateOnce(const std::string& checkpoint_path, const std::string& logdir,
                                        const EvaluateOptions& options) {
  RETURN_IF_ERROR(CheckNumEvals(options));
  ASSIGN_OR_RETURN(const bool exists, CheckpointExists(checkpoint_path, options.fs));
  if (!exists) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint_path: there is no checkpoint ", checkpoint_path));
  }
  return Evaluator(logdir, options).Evaluate(checkpoint_path);
}

absl::StatusOr<absl::optional<Evaluation>> EvaluationLoop(const std::string& checkpoint_dir, const std::string& logdir,
                                                          const EvaluationLoopOptions& options) {
  RETURN_IF_ERROR(CheckNumEvals(options));
  CheckpointsIteratorOptions watch;
  watch.wait.timeout = options.timeout;
  watch.wait.stop = options.stop;
  watch.wait.clock = options.clock;
  watch.wait.fs = options.fs;
  watch.min_interval = options.eval_interval_secs;
  watch.timeout_fn = options.timeout_fn;
  CheckpointsIterator checkpoints(checkpoint_dir, watch);
  Evaluator evaluator(logdir, options);
  absl::optional<Evaluation> last;
  int64_t left = options.max_number_of_evaluations.value_or(-1);
  while (left != 0) {
    const absl::optional<std::string> checkpoint = checkpoints.Next();
    if (!checkpoint && options.stop != nullptr && options.stop->requested()) {
      return absl::CancelledError("the process was told to stop");
    }
    if (!checkpoint) break;
    absl::StatusOr<Evaluation> evaluation = evaluator.Evaluate(*checkpoint);
    if (!evaluation.ok()) {
      ASSIGN_OR_RETURN(const bool exists, CheckpointExists(*checkpoint, options.fs));
      if (exists) return evaluation.status();
      LOG(WARNING) << "passing over " << *checkpoint << ", which is gone: " << evaluation.status().message();
      continue;
    }
    last = *std::move(evaluation);
    if (left > 0) --left;
  }
  return last;
}

}  // namespace lockstep::train::slim
