#include "lockstep/train/learn/experiment.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/session/end/pause.h"

namespace lockstep::train {
namespace {

constexpr absl::Duration kDelayOfTask = absl::Seconds(5);
constexpr absl::Duration kMaxDelay = absl::Seconds(60);
constexpr double kDelaySteps = 8000;
constexpr int64_t kDefaultStepsPerIteration = 1000;
constexpr absl::Duration kWarningInterval = absl::Minutes(10);

absl::Status Wrong(absl::string_view option, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("Experiment's ", option, " ", why));
}

absl::Status CheckAtLeast(absl::string_view option, const absl::optional<int64_t>& value, int64_t least) {
  if (!value || *value >= least) return absl::OkStatus();
  return Wrong(option, absl::StrCat("is ", *value, ", must be at least ", least));
}

absl::Status CheckTime(absl::string_view option, const absl::optional<absl::Duration>& time) {
  if (!time || *time >= absl::ZeroDuration()) return absl::OkStatus();
  return Wrong(option, absl::StrCat("is ", absl::FormatDuration(*time), ", must be 0 or more"));
}

absl::Status CheckStrategies(const std::vector<ExportStrategy>& strategies) {
  std::set<std::string> names;
  for (const ExportStrategy& strategy : strategies) {
    RETURN_IF_ERROR(strategy.Check());
    if (!names.insert(strategy.name).second) {
      return Wrong("export_strategies", absl::StrCat("have the name ", strategy.name, " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const ExperimentOptions& options) {
  if (options.estimator == nullptr) return Wrong("estimator", "is missing");
  RETURN_IF_ERROR(CheckAtLeast("train_steps", options.train_steps, 1));
  RETURN_IF_ERROR(CheckAtLeast("eval_steps", options.eval_steps, 1));
  RETURN_IF_ERROR(CheckAtLeast("min_eval_frequency", options.min_eval_frequency, 0));
  RETURN_IF_ERROR(CheckAtLeast("local_eval_frequency", options.local_eval_frequency, 0));
  RETURN_IF_ERROR(CheckAtLeast("train_steps_per_iteration", options.train_steps_per_iteration, 1));
  RETURN_IF_ERROR(CheckTime("eval_delay", options.eval_delay));
  RETURN_IF_ERROR(CheckTime("continuous_eval_throttle", options.continuous_eval_throttle));
  RETURN_IF_ERROR(CheckTime("check_interval", options.check_interval));
  const bool has_null = absl::c_linear_search(options.train_monitors, nullptr) ||
                        absl::c_linear_search(options.eval_hooks, nullptr) ||
                        absl::c_linear_search(options.saving_listeners, nullptr);
  if (has_null) return Wrong("train_monitors, eval_hooks or saving_listeners", "have one that is null");
  if (options.eval_input_fn && !options.eval_split.empty()) {
    return Wrong("eval_split", absl::StrCat("is ", options.eval_split, ", and eval_input_fn is given; give one"));
  }
  return CheckStrategies(options.export_strategies);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Experiment>> Experiment::Create(ExperimentOptions options) {
  RETURN_IF_ERROR(Check(options));
  std::unique_ptr<Experiment> experiment(new Experiment(std::move(options)));
  const Estimator& estimator = experiment->estimator();
  RETURN_IF_ERROR(estimator.CheckTraining(experiment->TrainArguments()));
  // An experiment that only trains does not need the configured split.
  const Estimator::EvaluateArguments evaluation = experiment->EvaluateArguments("");
  if (!evaluation.split.empty() || !evaluation.metrics.empty()) RETURN_IF_ERROR(estimator.CheckEvaluation(evaluation));
  return experiment;
}

ContinuousEvalOptions Experiment::OnTrainData() {
  ContinuousEvalOptions options;
  options.name = "continuous_on_train_data";
  return options;
}

Estimator::TrainArguments Experiment::TrainArguments() const {
  Estimator::TrainArguments arguments;
  arguments.train_split = options_.train_split;
  arguments.hooks = options_.train_monitors;
  arguments.saving_listeners = options_.saving_listeners;
  arguments.max_steps = options_.train_steps;
  return arguments;
}

Estimator::EvaluateArguments Experiment::EvaluateArguments(const std::string& name) const {
  Estimator::EvaluateArguments arguments;
  arguments.split = options_.eval_split;
  arguments.input_fn = options_.eval_input_fn;
  arguments.train_split = options_.train_split;
  arguments.steps = options_.eval_steps;
  arguments.metrics = options_.eval_metrics;
  arguments.name = name;
  arguments.hooks = options_.eval_hooks;
  return arguments;
}

absl::StatusOr<bool> Experiment::DelayTraining(absl::Duration delay) {
  if (delay <= absl::ZeroDuration()) return false;
  LOG(INFO) << "waiting " << absl::FormatDuration(delay) << " before training";
  if (estimator().config().is_chief()) {
    RETURN_IF_ERROR(Pause(delay, options_.clock, options_.stop));
    return false;
  }
  const absl::Status end = estimator().AwaitRunEnd(delay);
  if (end.ok()) LOG(INFO) << "the run is over";
  if (absl::IsDeadlineExceeded(end)) return false;
  RETURN_IF_ERROR(end);
  return true;
}

absl::Status Experiment::Train(absl::optional<absl::Duration> delay) {
  RETURN_IF_ERROR(CheckTime("delay", delay));
  const int task = estimator().config().task_id();
  Estimator::TrainArguments arguments = TrainArguments();
  if (!delay && options_.delay_workers_by_global_step) {
    arguments.startup_delay_steps = static_cast<int64_t>(std::floor(kDelaySteps * std::log(task + 1)));
    delay = absl::ZeroDuration();
  }
  ASSIGN_OR_RETURN(const bool over, DelayTraining(delay.value_or(std::min(kMaxDelay, task * kDelayOfTask))));
  return over ? absl::OkStatus() : estimator().Train(arguments);
}

absl::StatusOr<EvaluationMetrics> Experiment::Evaluate(absl::optional<absl::Duration> delay, const std::string& name) {
  RETURN_IF_ERROR(CheckTime("delay", delay));
  RETURN_IF_ERROR(Pause(delay.value_or(options_.eval_delay), options_.clock, options_.stop));
  return estimator().Evaluate(EvaluateArguments(name));
}

absl::Status Experiment::ContinuousEval(const ContinuousEvalOptions& options) {
  return ContinuousLoop(options, options_.eval_split, /*exports=*/true);
}

absl::Status Experiment::ContinuousEvalOnTrainData(ContinuousEvalOptions options) {
  return ContinuousLoop(options, options_.train_split, /*exports=*/false);
}

absl::Status Experiment::ContinuousLoop(const ContinuousEvalOptions& options, const std::string& split, bool exports) {
  RETURN_IF_ERROR(CheckTime("delay", options.delay));
  RETURN_IF_ERROR(CheckTime("throttle", options.throttle));
  RETURN_IF_ERROR(Pause(options.delay.value_or(options_.eval_delay), options_.clock, options_.stop));
  const absl::Duration throttle = options.throttle.value_or(options_.continuous_eval_throttle);
  absl::optional<EvaluationMetrics> result;
  std::string evaluated;
  absl::Time next_warning = absl::InfinitePast();
  bool ended = false;
  // The predicate is also called with the last result.
  while ((!options.predicate || options.predicate(result)) && !ended) {
    const absl::Time began = options_.clock->Now();
    // Must precede the check for a checkpoint, because the newest checkpoint of a finished run does not change.
    ASSIGN_OR_RETURN(const bool finished, estimator().RunIsFinished());
    ASSIGN_OR_RETURN(result, EvaluateNewest(options, split, exports, &evaluated));
    if (result) {
      ASSIGN_OR_RETURN(ended, IsLast(result->global_step));
    }
    ASSIGN_OR_RETURN(const auto newest, estimator().LatestCheckpoint());
    ended = ended || (finished && newest == evaluated);
    if (ended) continue;
    if (!result && began >= next_warning) {
      LOG(WARNING) << estimator().config().model_dir() << " has no new checkpoint to evaluate";
      next_warning = began + kWarningInterval;
    }
    const absl::Duration rest = throttle - (options_.clock->Now() - began);
    if (rest > absl::ZeroDuration()) RETURN_IF_ERROR(Pause(rest, options_.clock, options_.stop));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Experiment::IsLast(int64_t step) {
  // The chief's number of steps may differ from this process's.
  ASSIGN_OR_RETURN(const absl::optional<int64_t> of_run, estimator().LastStep());
  const absl::optional<int64_t> last = of_run ? of_run : options_.train_steps;
  return last && step >= *last;
}

absl::StatusOr<absl::optional<EvaluationMetrics>> Experiment::EvaluateNewest(const ContinuousEvalOptions& options,
                                                                             const std::string& split, bool exports,
                                                                             std::string* evaluated) {
  ASSIGN_OR_RETURN(const auto newest, estimator().LatestCheckpoint());
  if (!newest || (options.evaluate_checkpoint_only_once && *newest == *evaluated)) return absl::nullopt;
  Estimator::EvaluateArguments arguments = EvaluateArguments(options.name);
  arguments.split = split;
  // The training data always come from a split.
  if (!exports) arguments.input_fn = nullptr;
  arguments.checkpoint = newest;
  absl::StatusOr<EvaluationMetrics> result = estimator().Evaluate(arguments);
  if (result.ok() && exports) {
    const absl::Status exported = Export(*result).status();
    if (!exported.ok()) result = exported;
  }
  // A missing checkpoint has been replaced by a newer one; a damaged one is tried only once.
  if (absl::IsNotFound(result.status())) {
    ASSIGN_OR_RETURN(const auto now, estimator().LatestCheckpoint());
    if (now == newest) return result.status();  // something else is missing
  }
  if (absl::IsNotFound(result.status()) || absl::IsDataLoss(result.status())) {
    LOG(ERROR) << "not evaluated: " << result.status().message();
    if (absl::IsDataLoss(result.status())) *evaluated = *newest;
    return absl::nullopt;
  }
  RETURN_IF_ERROR(result.status());
  *evaluated = *newest;
  return *result;
}

absl::StatusOr<ExperimentResult> Experiment::EvaluateAndExport(const Estimator::EvaluateArguments& arguments) {
  ExperimentResult result;
  ASSIGN_OR_RETURN(result.evaluation, estimator().Evaluate(arguments));
  ASSIGN_OR_RETURN(result.exports, Export(*result.evaluation));
  return result;
}

absl::StatusOr<ExperimentResult> Experiment::TrainAndEvaluate() {
  return TrainAndEvaluateEvery(options_.min_eval_frequency);
}

absl::StatusOr<ExperimentResult> Experiment::LocalRun() {
  return TrainAndEvaluateEvery(options_.local_eval_frequency.value_or(0));
}

absl::StatusOr<ExperimentResult> Experiment::TrainAndEvaluateEvery(int64_t frequency) {
  const RunConfig& config = estimator().config();
  RETURN_IF_ERROR(estimator().CheckEvaluation(EvaluateArguments("")));
  Estimator::TrainArguments arguments = TrainArguments();

  ExperimentResult newest;
  CheckpointEvaluationListener listener([&](const std::string& checkpoint) -> absl::Status {
    Estimator::EvaluateArguments evaluation = EvaluateArguments("");
    evaluation.checkpoint = checkpoint;
    ASSIGN_OR_RETURN(newest, EvaluateAndExport(evaluation));
    return absl::OkStatus();
  });
  CheckpointEvaluationOptions looks;
  looks.evaluate = [&](const std::string& checkpoint) {
    Estimator::EvaluateArguments evaluation = EvaluateArguments("");
    evaluation.checkpoint = checkpoint;
    return estimator().Evaluate(evaluation).status();
  };
  looks.latest_checkpoint = [this] { return estimator().LatestCheckpoint(); };
  looks.every_n_steps = std::max<int64_t>(frequency, 1);
  looks.check_interval = options_.check_interval;
  looks.clock = options_.clock;
  CheckpointEvaluationHook hook(std::move(looks));

  if (config.is_chief() && options_.checkpoint_and_export && estimator().SavesPeriodically()) {
    arguments.saving_listeners.push_back(&listener);
  } else if (config.is_chief() && frequency > 0) {
    arguments.hooks.push_back(&hook);
  }
  RETURN_IF_ERROR(estimator().Train(arguments));
  // A run that was already over has not saved anything.
  if (newest.evaluation) return newest;
  return EvaluateAndExport(EvaluateArguments(""));
}

int64_t Experiment::steps_per_iteration() const {
  if (options_.train_steps_per_iteration) return *options_.train_steps_per_iteration;
  return options_.train_steps ? std::max<int64_t>(*options_.train_steps / 10, 1) : kDefaultStepsPerIteration;
}

absl::StatusOr<ExperimentResult> Experiment::ContinuousTrainAndEval(const ContinuePredicate& predicate) {
  RETURN_IF_ERROR(estimator().CheckEvaluation(EvaluateArguments("one_pass")));
  ExperimentResult result;
  int64_t step = -1;
  bool ended = false;
  // The predicate is also called with the last result.
  while ((!predicate || predicate(result.evaluation)) && !ended) {
    Estimator::TrainArguments arguments = TrainArguments();
    arguments.steps = steps_per_iteration();
    RETURN_IF_ERROR(estimator().Train(arguments));
    ASSIGN_OR_RETURN(result, EvaluateAndExport(EvaluateArguments("one_pass")));
    // If a hook stops every call to Train, the run makes no progress, and the loop ends.
    const int64_t now = result.evaluation->global_step;
    ended = now == step || (options_.train_steps && now >= *options_.train_steps);
    step = now;
  }
  return result;
}

absl::Status Experiment::RunStdServer() {
  const RunConfig& config = estimator().config();
  if (!config.task_type() || (!config.cluster_spec().empty() && config.master().empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a server needs a task type, and in a cluster a master: the cluster is \"", config.cluster_spec().ToString(),
        "\", the type \"", config.task_type().value_or(""), "\", the master \"", config.master(), "\""));
  }
  return estimator().AwaitRunEnd(absl::InfiniteDuration());
}

absl::StatusOr<ExperimentResult> Experiment::Test() {
  RETURN_IF_ERROR(estimator().CheckEvaluation(EvaluateArguments("one_pass")));
  Estimator::TrainArguments arguments = TrainArguments();
  arguments.saving_listeners.clear();
  arguments.max_steps.reset();
  arguments.steps = 1;
  RETURN_IF_ERROR(estimator().Train(arguments));
  Estimator::EvaluateArguments evaluation = EvaluateArguments("one_pass");
  evaluation.steps = 1;
  evaluation.hooks.clear();
  return EvaluateAndExport(evaluation);
}

absl::StatusOr<std::vector<std::string>> Experiment::Export(const EvaluationMetrics& result) {
  std::vector<std::string> exports;
  for (const ExportStrategy& strategy : options_.export_strategies) {
    ASSIGN_OR_RETURN(std::string path, strategy.Export(estimator(), result));
    LOG(INFO) << "exported global step " << result.global_step << " to " << path;
    exports.push_back(std::move(path));
  }
  return exports;
}

void Experiment::ExtendTrainHooks(const std::vector<Hook*>& hooks) {
  options_.train_monitors.insert(options_.train_monitors.end(), hooks.begin(), hooks.end());
}

absl::StatusOr<std::vector<ExportStrategy>> Experiment::ResetExportStrategies(std::vector<ExportStrategy> strategies) {
  RETURN_IF_ERROR(CheckStrategies(strategies));
  return std::exchange(options_.export_strategies, std::move(strategies));
}

}  // namespace lockstep::train
