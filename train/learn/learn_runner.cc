#include "lockstep/train/learn/learn_runner.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train::learn_runner {
namespace {

absl::StatusOr<ExperimentResult> WithoutResult(absl::Status status) {
  RETURN_IF_ERROR(status);
  return ExperimentResult();
}

struct Schedule {
  const char* name;
  // True if the method looks for checkpoints.
  bool evaluates;
  absl::StatusOr<ExperimentResult> (*run)(Experiment& experiment);
};

const Schedule kSchedules[] = {
    {"train", false, [](Experiment& e) { return WithoutResult(e.Train()); }},
    {"evaluate", true,
     [](Experiment& e) -> absl::StatusOr<ExperimentResult> {
       ExperimentResult result;
       ASSIGN_OR_RETURN(result.evaluation, e.Evaluate());
       return result;
     }},
    {"continuous_eval", true, [](Experiment& e) { return WithoutResult(e.ContinuousEval()); }},
    {"continuous_eval_on_train_data", true, [](Experiment& e) { return WithoutResult(e.ContinuousEvalOnTrainData()); }},
    {"train_and_evaluate", true, [](Experiment& e) { return e.TrainAndEvaluate(); }},
    {"continuous_train_and_eval", true, [](Experiment& e) { return e.ContinuousTrainAndEval(); }},
    {"local_run", true, [](Experiment& e) { return e.LocalRun(); }},
    {"run_std_server", false, [](Experiment& e) { return WithoutResult(e.RunStdServer()); }},
    {"test", true, [](Experiment& e) { return e.Test(); }},
};

absl::StatusOr<const Schedule*> FindSchedule(const std::string& name) {
  std::vector<std::string> names;
  for (const Schedule& schedule : kSchedules) {
    if (name == schedule.name) return &schedule;
    names.push_back(schedule.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no schedule \"", name, "\", must be one of ", absl::StrJoin(names, ", ")));
}

std::string DefaultSchedule(const RunConfig& config) {
  const std::string& job = config.task().job;
  if (job == "evaluator") return "continuous_eval";
  if (!config.is_distributed()) return "train_and_evaluate";
  if (job == "ps") return "run_std_server";
  return job == "chief" || job == "master" ? "train_and_evaluate" : "train";
}

absl::Status CheckModelDir(const RunConfig& config, const Schedule& schedule) {
  const Role role = config.task().role;
  const bool needed = schedule.evaluates || role == Role::kChief || role == Role::kEvaluator;
  if (!needed || !config.model_dir().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the RunConfig has no model_dir: where the checkpoints are, which ", schedule.name, " needs"));
}

absl::StatusOr<std::unique_ptr<Experiment>> Checked(absl::StatusOr<std::unique_ptr<Experiment>> made,
                                                    const RunConfig& config) {
  RETURN_IF_ERROR(made.status());
  if (*made == nullptr) return absl::InvalidArgumentError("experiment_fn returned no experiment");
  if ((*made)->estimator().config().Uid() != config.Uid()) {
    return absl::InvalidArgumentError(absl::StrCat("experiment_fn has changed the RunConfig from\n", config.Uid(),
                                                   "\nto\n", (*made)->estimator().config().Uid()));
  }
  return made;
}

}  // namespace

absl::StatusOr<ExperimentResult> Run(const ExperimentFunction& make, const RunConfig& config,
                                     const absl::optional<std::string>& schedule) {
  if (!make) return absl::InvalidArgumentError("experiment_fn is null: give the function that makes the experiment");
  ASSIGN_OR_RETURN(const Schedule* const chosen, FindSchedule(schedule.value_or(DefaultSchedule(config))));
  RETURN_IF_ERROR(CheckModelDir(config, *chosen));
  ASSIGN_OR_RETURN(const std::unique_ptr<Experiment> experiment, Checked(make(config), config));
  LOG(INFO) << "experiment: " << chosen->name;
  return chosen->run(*experiment);
}

absl::StatusOr<ExperimentResult> Run(const TunedExperimentFunction& make, const RunConfig& config,
                                     const HyperParameters& hparams, const absl::optional<std::string>& schedule) {
  ExperimentFunction with_hparams;
  if (make) with_hparams = [&](const RunConfig& run_config) { return make(run_config, hparams); };
  return Run(with_hparams, config, schedule);
}

absl::StatusOr<ExperimentResult> Run(const ExperimentFunction& make, const std::string& output_dir,
                                     const absl::optional<std::string>& schedule) {
  RunConfigOptions options;
  options.model_dir = output_dir;
  ASSIGN_OR_RETURN(const RunConfig config, RunConfig::Create(options));
  return Run(make, config, schedule);
}

absl::Status Tune(const TunedExperimentFunction& make, Tuner* tuner) {
  if (!make) return absl::InvalidArgumentError("experiment_fn is null: give the function that makes the experiment");
  if (tuner == nullptr) return absl::InvalidArgumentError("tuner is null");
  const TunedExperimentFunction checked = [&](const RunConfig& config, const HyperParameters& parameters) {
    return Checked(make(config, parameters), config);
  };
  while (true) {
    ASSIGN_OR_RETURN(const bool more, tuner->NextTrial());
    if (!more) return absl::OkStatus();
    RETURN_IF_ERROR(tuner->RunExperiment(checked));
  }
}

}  // namespace lockstep::train::learn_runner
