#include "lockstep/train/learn/train_op_estimator.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/train/events/event_writer_cache.h"
#include "lockstep/train/learn/model_export.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/session/end/await_run_end.h"
#include "lockstep/train/session/init/default_policy.h"
#include "lockstep/train/session/run_bound.h"
#include "lockstep/worker/evaluation/model_values.h"

namespace lockstep::train {
namespace {

absl::Status Wrong(absl::string_view option, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("TrainOpEstimator's ", option, " ", why));
}

// Returns the options that all calls to Train have in common.
MonitoredTrainingOptions TrainingOf(const RunConfig& config, const TrainOpEstimatorOptions& options) {
  MonitoredTrainingOptions training;
  training.session = options.session;
  training.scaffold = options.scaffold;
  config.ApplyTo(&training);
  return training;
}

absl::Status Check(const RunConfig& config, const TrainOpEstimatorOptions& options) {
  const SessionOptions& session = options.session;
  const Role role = config.task().role;
  if ((role == Role::kChief || role == Role::kWorker) && session.is_chief != config.is_chief()) {
    return Wrong("session", absl::StrCat("is that of ", session.is_chief ? "the chief" : "a worker",
                                         ", and its RunConfig of ", config.is_chief() ? "the chief" : "a worker"));
  }
  const std::string chief = MasterOf(config.task().chief_address);
  if (config.options().master && !session.master.empty() && session.master != chief) {
    return Wrong("session", absl::StrCat("has the master ", session.master, ", and the chief of its RunConfig is at \"",
                                         chief, "\""));
  }
  if (!session.logdir.empty() && session.logdir != config.model_dir()) {
    return Wrong("session", absl::StrCat("has the logdir ", session.logdir, ", and its RunConfig the model_dir ",
                                         config.model_dir().empty() ? "\"\"" : config.model_dir()));
  }
  if ((role == Role::kChief || role == Role::kEvaluator) && config.model_dir().empty()) {
    return Wrong("config", "has no model_dir: give --logdir, TF_CONFIG's model_dir or RunConfigOptions::model_dir");
  }
  if (session.op.make_workload && !options.evaluate) {
    return Wrong("evaluate", "is missing: a model of make_workload's is evaluated by a function of the program's");
  }
  return ValidateRunSpec(TrainingOf(config, options).session.op.spec);
}

void EndAt(int64_t step, config::v1::TrainingConfig* training) {
  training->clear_additional_steps();
  training->clear_unbounded();
  training->set_steps(step);
}

// Sets the length of the run for this call to Train. max_steps or, if that is absent, the configured number of steps
// limits `steps`. A run that has already reached the limit takes no steps, however often the program is started.
absl::Status SetLength(const Estimator::TrainArguments& arguments, SessionOptions* session) {
  config::v1::TrainingConfig* const training = session->op.spec.mutable_training();
  if (arguments.steps) {
    absl::optional<int64_t> last = arguments.max_steps;
    if (!last && training->steps() > 0) last = training->steps();
    training->clear_steps();
    training->clear_unbounded();
    training->set_additional_steps(*arguments.steps);
    if (!last || !session->is_chief) return absl::OkStatus();
    ASSIGN_OR_RETURN(const absl::optional<int64_t> bound, RunBound(*session));
    if (bound && *bound > *last) EndAt(*last, training);
  } else if (arguments.max_steps) {
    EndAt(*arguments.max_steps, training);
  }
  return absl::OkStatus();
}

// The split that Train reads by default.
constexpr char kTrainSplit[] = "train";

// Makes `op` train on the split of this name.
absl::Status SelectTrainSplit(const std::string& name, TrainOp* op) {
  if (name.empty() || name == kTrainSplit) return absl::OkStatus();
  if (op->make_workload) {
    return Wrong("train_split", absl::StrCat("is ", name, ", and the model of make_workload's brings its own input"));
  }
  auto* const splits = op->spec.mutable_input()->mutable_split();
  const auto chosen = absl::c_find_if(*splits, [&](const auto& split) { return split.name() == name; });
  if (chosen == splits->end()) {
    return Wrong("train_split", absl::StrCat("is ", name, ", which is not a split of the input: ",
                                             absl::StrJoin(SplitNames(op->spec.input()), ", ")));
  }
  config::v1::InputConfig::Split copy = *chosen;
  copy.set_name(kTrainSplit);
  const auto replaced = absl::c_find_if(*splits, [](const auto& split) { return split.name() == kTrainSplit; });
  *(replaced == splits->end() ? splits->Add() : &*replaced) = std::move(copy);
  return absl::OkStatus();
}

// Returns a hook that calls the listeners and replaces the chief's own timer for saving. Returns null if there are no
// listeners.
absl::StatusOr<std::unique_ptr<Hook>> AddListeners(const Estimator::TrainArguments& arguments,
                                                   MonitoredTrainingOptions* training) {
  if (arguments.saving_listeners.empty()) return nullptr;
  ASSIGN_OR_RETURN(const config::v1::CheckpointConfig saves, CheckpointsOf(*training));
  CheckpointSaverOptions options;
  options.period =
      saves.every_steps() > 0 ? Period::Steps(saves.every_steps()) : Period::Time(absl::Seconds(saves.every_seconds()));
  options.listeners = arguments.saving_listeners;
  options.clock = training->session.clock;
  ASSIGN_OR_RETURN(std::unique_ptr<Hook> saver, CheckpointSaverHook::Create(options));
  training->chief_only_hooks = {saver.get()};
  training->save_checkpoint_steps = kNone;
  // If the hook saves every N steps, the chief also keeps its timer.
  training->save_checkpoint_secs = kNone;
  if (saves.every_steps() > 0 && saves.every_seconds() > 0) {
    training->save_checkpoint_secs = absl::Seconds(saves.every_seconds());
  }
  return saver;
}

}  // namespace

absl::StatusOr<std::shared_ptr<TrainOpEstimator>> TrainOpEstimator::Create(const RunConfig& config,
                                                                           TrainOpEstimatorOptions options) {
  RETURN_IF_ERROR(Check(config, options));
  return std::shared_ptr<TrainOpEstimator>(new TrainOpEstimator(config, std::move(options)));
}

bool TrainOpEstimator::SavesPeriodically() const {
  const auto saves = CheckpointsOf(TrainingOf(config_, options_));
  return saves.ok() && (saves->every_steps() > 0 || saves->every_seconds() > 0);
}

absl::Status TrainOpEstimator::CheckTraining(const TrainArguments& arguments) const {
  if (!arguments.saving_listeners.empty() && !SavesPeriodically()) {
    return Wrong("saving_listeners",
                 "hear of no checkpoint: the RunConfig has neither save_checkpoints_steps nor save_checkpoints_secs");
  }
  TrainOp op = options_.session.op;
  return SelectTrainSplit(arguments.train_split, &op);
}

absl::Status TrainOpEstimator::CheckEvaluation(const EvaluateArguments& arguments) const {
  if (options_.evaluate) return absl::OkStatus();
  config::v1::RunSpec spec = options_.session.op.spec;
  config::v1::EvaluationConfig* const evaluation = spec.mutable_evaluation();
  evaluation->set_split(arguments.split.empty() ? EvaluationSplit(spec) : arguments.split);
  const bool trains_another = !arguments.train_split.empty() && arguments.train_split != kTrainSplit;
  if (trains_another && !arguments.input_fn && evaluation->split() == kTrainSplit) {
    return Wrong("eval_split", absl::StrCat("is ", kTrainSplit, ", the name that ", arguments.train_split,
                                            " has as the train_split; give that split another name"));
  }
  if (arguments.input_fn) evaluation->clear_split();
  for (const std::string& metric : arguments.metrics) evaluation->add_metric(metric);
  return ValidateRunSpec(spec);
}

absl::Status TrainOpEstimator::Train(const TrainArguments& arguments) {
  RETURN_IF_ERROR(CheckTraining(arguments));
  MonitoredTrainingOptions training = TrainingOf(config_, options_);
  RETURN_IF_ERROR(SelectTrainSplit(arguments.train_split, &training.session.op));
  RETURN_IF_ERROR(SetLength(arguments, &training.session));
  if (arguments.startup_delay_steps > 0) training.session.startup_delay_steps = arguments.startup_delay_steps;
  RETURN_IF_ERROR(ApplyDefaultPolicy(&training.session));
  std::unique_ptr<Hook> saver;
  if (training.session.is_chief) {
    ASSIGN_OR_RETURN(saver, AddListeners(arguments, &training));
  }
  training.hooks = arguments.hooks;
  const TrainOp op = training.session.op;
  return WithSession(MonitoredTrainingSession(std::move(training)), [&](MonitoredSession& session) -> absl::Status {
    while (!session.ShouldStop()) RETURN_IF_ERROR(session.Run(op).status());
    return absl::OkStatus();
  });
}

absl::StatusOr<EvaluationMetrics> TrainOpEstimator::Evaluate(const EvaluateArguments& arguments) {
  absl::optional<std::string> checkpoint = arguments.checkpoint;
  if (!checkpoint) {
    ASSIGN_OR_RETURN(checkpoint, LatestCheckpoint());
  }
  if (!checkpoint) return absl::NotFoundError(absl::StrCat(config_.model_dir(), " has no checkpoint to evaluate"));
  for (EvaluationHook* const hook : arguments.hooks) RETURN_IF_ERROR(hook->Begin(*checkpoint));
  ASSIGN_OR_RETURN(const EvaluationMetrics result, Measure(*checkpoint, arguments));
  LOG(INFO) << "evaluated global step " << result.global_step << ": "
            << absl::StrJoin(result.metrics, ", ", absl::PairFormatter(" = "));
  RETURN_IF_ERROR(WriteEvents(arguments.name, result));
  for (EvaluationHook* const hook : arguments.hooks) RETURN_IF_ERROR(hook->End(result));
  return result;
}

absl::StatusOr<EvaluationMetrics> TrainOpEstimator::Measure(const std::string& checkpoint,
                                                            const EvaluateArguments& arguments) {
  EvaluationMetrics result;
  result.checkpoint = checkpoint;
  if (options_.evaluate) {
    ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(fs(), checkpoint));
    ASSIGN_OR_RETURN(result.global_step, LoadGlobalStep(*reader));
    ASSIGN_OR_RETURN(result.metrics, options_.evaluate(checkpoint, arguments));
    return result;
  }
  std::unique_ptr<RunEvaluator> of_input_fn;
  ASSIGN_OR_RETURN(RunEvaluator* const evaluator, EvaluatorOf(arguments, &of_input_fn));
  EvaluationOptions batches;
  batches.batch_size = options_.session.op.spec.input().batch_size();
  batches.max_batches = arguments.steps.value_or(0);
  batches.cancelled = [stop = options_.session.stop] { return stop != nullptr && stop->requested(); };
  batches.after_batch = [&](int64_t count, int64_t examples) -> absl::Status {
    for (EvaluationHook* const hook : arguments.hooks) RETURN_IF_ERROR(hook->AfterBatch(count, examples));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const RunEvaluator::Evaluation evaluation, evaluator->EvaluateCheckpoint(checkpoint, batches));
  result.global_step = evaluation.step;
  for (const MetricValue& metric : evaluation.result.metrics) result.metrics[metric.name] = metric.value;
  return result;
}

absl::StatusOr<RunEvaluator*> TrainOpEstimator::EvaluatorOf(const EvaluateArguments& arguments,
                                                            std::unique_ptr<RunEvaluator>* of_input_fn) {
  TrainOp op = options_.session.op;
  RETURN_IF_ERROR(SelectTrainSplit(arguments.train_split, &op));
  config::v1::RunSpec& spec = op.spec;
  const std::string split = arguments.split.empty() ? EvaluationSplit(spec) : arguments.split;
  if (config_.options().tf_random_seed) spec.mutable_training()->set_seed(*config_.options().tf_random_seed);
  for (const std::string& metric : arguments.metrics) spec.mutable_evaluation()->add_metric(metric);
  if (arguments.input_fn) {
    ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, CatchExceptions(arguments.input_fn));
    if (dataset == nullptr) return Wrong("input_fn", "returned no dataset");
    ASSIGN_OR_RETURN(*of_input_fn, RunEvaluator::Create(fs(), spec, split, std::move(dataset)));
    return of_input_fn->get();
  }
  std::unique_ptr<RunEvaluator>& evaluator =
      evaluators_[absl::StrCat(arguments.train_split, "\n", split, "\n", absl::StrJoin(arguments.metrics, "\n"))];
  if (evaluator == nullptr) {
    ASSIGN_OR_RETURN(evaluator, RunEvaluator::Create(fs(), spec, split));
  }
  return evaluator.get();
}

absl::Status TrainOpEstimator::WriteEvents(const std::string& name, const EvaluationMetrics& result) {
  std::shared_ptr<EventWriter>& events = events_[name];
  if (events == nullptr) {
    const std::string directory = JoinPath(config_.model_dir(), name.empty() ? "eval" : absl::StrCat("eval_", name));
    ASSIGN_OR_RETURN(events, EventWriterCache::OfProcess()->Get(fs(), options_.session.clock, directory));
  }
  for (const auto& [metric, value] : result.metrics) {
    events->WriteScalar(metric, static_cast<float>(value), result.global_step);
  }
  // The writer logs an error and tries again.
  events->Flush().IgnoreError();
  return absl::OkStatus();
}

absl::Status TrainOpEstimator::Export(const std::string& directory, const EvaluationMetrics& result) {
  return ExportModel(fs(), config_.model_dir(), result, directory, options_.session.clock, options_.session.stop);
}

absl::StatusOr<absl::optional<std::string>> TrainOpEstimator::LatestCheckpoint() {
  return train::LatestCheckpoint(config_.model_dir(), "checkpoint", fs());
}

absl::StatusOr<bool> TrainOpEstimator::RunIsFinished() {
  ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record, ReadRunRecord(fs(), config_.model_dir()));
  return record.has_value() && record->finished();
}

absl::StatusOr<absl::optional<int64_t>> TrainOpEstimator::LastStep() {
  ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record, ReadRunRecord(fs(), config_.model_dir()));
  if (!record) return absl::optional<int64_t>();
  const int64_t steps = record->config().training().steps();
  return absl::make_optional(steps > 0 ? steps : std::numeric_limits<int64_t>::max());
}

absl::Status TrainOpEstimator::AwaitRunEnd(absl::Duration limit) {
  AwaitRunEndOptions options;
  options.master = options_.session.master.empty() ? MasterOf(config_.task().chief_address) : options_.session.master;
  options.tls_dir = options_.session.tls_dir;
  options.logdir = config_.model_dir();
  options.limit = limit;
  const config::v1::RunSpec spec = TrainingOf(config_, options_).session.op.spec;
  options.max_silence = absl::Seconds(spec.cluster().chief_wait_seconds());
  options.stop = options_.session.stop;
  options.clock = options_.session.clock;
  options.fs = fs();
  return train::AwaitRunEnd(options);
}

}  // namespace lockstep::train
