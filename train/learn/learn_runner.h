#ifndef LOCKSTEP_TRAIN_LEARN_LEARN_RUNNER_H_
#define LOCKSTEP_TRAIN_LEARN_LEARN_RUNNER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/train/learn/experiment.h"
#include "lockstep/train/learn/run_config.h"

namespace lockstep::train::learn_runner {

// Creates a program's experiment. Its RunConfig must equal `config` except for options that Uid ignores.
using ExperimentFunction = std::function<absl::StatusOr<std::unique_ptr<Experiment>>(const RunConfig& config)>;

// Creates an experiment and calls the method that `schedule` names: train, evaluate, continuous_eval,
// continuous_eval_on_train_data, train_and_evaluate, continuous_train_and_eval, local_run, run_std_server or test.
// Without `schedule`, calls train_and_evaluate if the process is alone or the task is a chief or master; train for a
// worker; run_std_server for a ps; continuous_eval for an evaluator.
// Errors: InvalidArgument for an unknown schedule, for a missing model_dir on a chief, an evaluator or with a schedule
// that evaluates, and if `make` returns no experiment or one with a different RunConfig; those of `make` and of the
// method.
absl::StatusOr<ExperimentResult> Run(const ExperimentFunction& make, const RunConfig& config,
                                     const absl::optional<std::string>& schedule = absl::nullopt);

// Hyperparameters by name.
using HyperParameters = std::map<std::string, std::string>;
using TunedExperimentFunction =
    std::function<absl::StatusOr<std::unique_ptr<Experiment>>(const RunConfig& config, const HyperParameters& hparams)>;

// Like Run above, with hyperparameters, which are passed to `make`.
absl::StatusOr<ExperimentResult> Run(const TunedExperimentFunction& make, const RunConfig& config,
                                     const HyperParameters& hparams,
                                     const absl::optional<std::string>& schedule = absl::nullopt);

// Like the first Run, with a RunConfig from the environment and the model_dir `output_dir`.
absl::StatusOr<ExperimentResult> Run(const ExperimentFunction& make, const std::string& output_dir,
                                     const absl::optional<std::string>& schedule = absl::nullopt);

// An interface for choosing hyperparameters, one trial at a time.
class Tuner {
 public:
  virtual ~Tuner() = default;
  // Advances to the next trial. Returns false if there is none.
  virtual absl::StatusOr<bool> NextTrial() = 0;
  // Creates the experiment of the current trial with `make`, which checks it as Run does, and runs it.
  virtual absl::Status RunExperiment(const TunedExperimentFunction& make) = 0;
};

// Runs all trials of the tuner. Errors: those of the tuner.
absl::Status Tune(const TunedExperimentFunction& make, Tuner* tuner);

}  // namespace lockstep::train::learn_runner

#endif  // LOCKSTEP_TRAIN_LEARN_LEARN_RUNNER_H_
