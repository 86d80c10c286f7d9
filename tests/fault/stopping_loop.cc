// The program of tests/fault/stopping_loops.sh. The run is ended by the program's own code or by its input. All loops
// compute the same gradients, but transform them in different ways that produce the same bits.
#include <any>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/graph_actions/train.h"
#include "lockstep/train/hooks/monitors/monitors.h"
#include "lockstep/train/hooks/stop/early_stopping_hook.h"
#include "lockstep/train/learn/experiment.h"
#include "lockstep/train/learn/train_op_estimator.h"
#include "lockstep/train/program/program.h"
#include "lockstep/train/slim/create_train_op.h"
#include "lockstep/train/slim/learning.h"
#include "lockstep/train/supervisor/supervisor.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep::train {
namespace {

constexpr char kTotalLoss[] = R"(
  model { layer { name: "logits" dense { units: 10 } } loss { softmax_cross_entropy {} } }
  input {
    split { name: "train" synthetic { examples: 4096 shape: 64 classes: 10 } }
    split { name: "test" synthetic { examples: 64 shape: 64 classes: 10 } }
    batch_size: 32
  }
  evaluation { split: "test" metric: "accuracy" }
)";
constexpr char kOptimizer[] = "momentum { momentum: 0.9 } learning_rate { initial: 0.05 } clip { by_norm: 0.5 }";
constexpr absl::Duration kSavePeriod = absl::Milliseconds(20);

// A train step that sets the learning rate, and negates the bias every hundred steps. Counts the negations in `extra`,
// and stops at `last_step`.
struct Negating {
  absl::StatusOr<slim::TrainStepResult> operator()(Session& session, const TrainOp& op,
                                                   slim::TrainStepKwargs& kwargs) const {
    ASSIGN_OR_RETURN(const StepResult step, session.Run(op));
    slim::TrainStepResult result{step.loss, false};
    if (!session.is_chief()) return result;
    RETURN_IF_ERROR(session.ChangeLearningRate(0.001f * static_cast<float>(1 + step.global_step % 50)));
    if (step.global_step % 100 != 0) return result;
    ASSIGN_OR_RETURN(const ReadResult read, session.Read({"logits/bias"}));
    std::vector<float> bias(read.values[0].value.flat<float>().begin(), read.values[0].value.flat<float>().end());
    for (float& value : bias) value = -value;
    RETURN_IF_ERROR(session.Assign({*NamedFloats("logits/bias", {10}, bias)}));
    int64_t& count = std::any_cast<int64_t&>(kwargs.extra["negations"]);
    result.should_stop = ++count * 100 >= last_step;
    return result;
  }
  static slim::TrainStepKwargs Kwargs() {
    slim::TrainStepKwargs kwargs;
    kwargs.extra["negations"] = int64_t{0};
    kwargs.state = [](const slim::TrainStepKwargs& own) {
      return absl::StrCat(std::any_cast<int64_t>(own.extra.at("negations")));
    };
    kwargs.set_state = [](slim::TrainStepKwargs& own, absl::string_view state) {
      int64_t count = 0;
      if (!absl::SimpleAtoi(state, &count)) return absl::InvalidArgumentError("no number");
      own.extra["negations"] = count;
      return absl::OkStatus();
    };
    return kwargs;
  }

  int64_t last_step;
};

// Different ways to compute the gradients. All produce the same gradients, except for `trains_bias`.
struct OpOptions {
  bool by_functions = false;
  bool summarize = false;
  bool trains_bias = false;
};

// Returns an op that trains the kernel, and also the bias if `options.trains_bias`. The kernel's gradient is tripled,
// and gradients are clipped.
absl::StatusOr<TrainOp> MakeTrainOp(const Program& program, const OpOptions& options) {
  slim::CreateTrainOpOptions create;
  if (!options.trains_bias) create.variables_to_train = {{"logits/kernel"}};
  create.gradient_multipliers["logits/kernel"] = 3.0f;
  if (options.by_functions) create.gradient_multipliers["logits/kernel"] = [](int64_t) { return 3.0f; };
  create.clip_gradient_norm = 0.4f;
  create.summarize_gradients = options.summarize;
  ASSIGN_OR_RETURN(TrainOp train_op, slim::CreateTrainOp(kTotalLoss, kOptimizer, create));
  train_op.spec.mutable_training()->set_replicas_to_aggregate(4);
  return train_op.WithSpec(program.WithFlags(train_op.spec));
}

// An input without any batch.
class NoBatches : public BatchSource {
 public:
  explicit NoBatches(ExampleSpec spec) : spec_(std::move(spec)) {}
  const ExampleSpec& spec() const override { return spec_; }
  absl::StatusOr<Batch> Get(int64_t, int64_t) override { return absl::OutOfRangeError("there is no batch"); }

 private:
  const ExampleSpec spec_;
};

absl::StatusOr<Workload> LoadWithoutBatches(const config::v1::RunSpec& spec) {
  ASSIGN_OR_RETURN(Workload workload, LoadWorkload(spec, {}));
  workload.batches = std::make_unique<NoBatches>(workload.batches->spec());
  return workload;
}

absl::Status PrintLoss(const absl::StatusOr<absl::optional<double>>& loss) {
  RETURN_IF_ERROR(loss.status());
  std::cout << "loss " << (*loss ? absl::StrCat(**loss) : "none") << std::endl;
  return absl::OkStatus();
}

// Returns a hook for which no loss is better than the first, so that it ends the run at `last_step`.
absl::StatusOr<std::unique_ptr<EarlyStoppingHook>> NeverImproves(int64_t last_step) {
  EarlyStoppingOptions options;
  options.patience = last_step - 1;
  options.min_delta = 1e6;
  options.stay_stopped = true;
  return EarlyStoppingHook::Create(options);
}

absl::Status TrainWithSlim(Program* program, const std::string& loop, int64_t last_step) {
  OpOptions op;
  op.by_functions = loop == "hook";
  op.trains_bias = loop == "step_function";
  ASSIGN_OR_RETURN(TrainOp train_op, MakeTrainOp(*program, op));
  if (loop == "empty") train_op.make_workload = LoadWithoutBatches;
  slim::TrainOptions options;
  options.session = program->Options(train_op);
  const std::string logdir = options.session.logdir;
  options.log_every_n_steps = 0;
  options.save_interval_secs = kSavePeriod;
  options.sync_optimizer = {{/*replicas_to_aggregate=*/4}};
  std::unique_ptr<Hook> hook;
  if (loop == "hook" && program->is_chief()) {
    ASSIGN_OR_RETURN(hook, NeverImproves(last_step));
    options.hooks = {hook.get()};
  }
  if (loop == "kwargs" && program->is_chief()) {
    options.train_step_kwargs.emplace().should_stop = [last_step](int64_t step) { return step >= last_step; };
  }
  if (loop == "step_function") {
    options.train_step_kwargs = Negating::Kwargs();
    options.train_step_fn = Negating{last_step};
  }
  return PrintLoss(slim::Train(train_op, logdir, options));
}

absl::Status TrainWithGraphActions(Program* program, int64_t last_step) {
  ASSIGN_OR_RETURN(const TrainOp train_op, MakeTrainOp(*program, {/*by_functions=*/true, /*summarize=*/true}));
  graph_actions::TrainOptions options;
  options.session = program->Options(train_op);
  options.session.program = "stopping_loop";
  options.save_model_period = kSavePeriod;
  options.log_every_steps = 100;
  StopAtStepOptions stop;
  stop.num_steps = last_step;
  ASSIGN_OR_RETURN(const auto monitor, StopAtStepMonitor::Create(stop));
  if (program->is_chief()) options.monitors = {monitor.get()};
  return PrintLoss(graph_actions::Train(options));
}

absl::Status TrainWithSupervisor(Program* program, int64_t last_step) {
  ASSIGN_OR_RETURN(const TrainOp train_op, MakeTrainOp(*program, {/*by_functions=*/false, /*summarize=*/true}));
  SupervisorOptions options;
  options.gate_loop = true;
  options.session = program->Options(train_op);
  options.session.program = "stopping_loop";
  options.save_model_period = kSavePeriod;
  ASSIGN_OR_RETURN(const auto supervisor, Supervisor::Create(options));
  Supervisor::PrepareOptions prepare;
  prepare.recover = true;
  absl::optional<double> loss;
  RETURN_IF_ERROR(supervisor->ManagedSession(
      [&](Session& session) -> absl::Status {
        while (!supervisor->ShouldStop()) {
          ASSIGN_OR_RETURN(const StepResult step, session.Run(train_op));
          loss = step.loss;
          if (program->is_chief() && step.global_step >= last_step) break;
        }
        return absl::OkStatus();
      },
      prepare));
  return PrintLoss(loss);
}

// Alternates between training and evaluation in one process.
absl::Status TrainAndEvaluate(Program* program, int64_t last_step) {
  ASSIGN_OR_RETURN(const TrainOp train_op, MakeTrainOp(*program, {/*by_functions=*/true}));
  TrainOpEstimatorOptions estimator;
  estimator.session = program->Options(train_op);
  RunConfigOptions config_options;
  config_options.model_dir = estimator.session.logdir;
  ASSIGN_OR_RETURN(const RunConfig config, RunConfig::Create(config_options, program->process().environment));
  ExperimentOptions options;
  ASSIGN_OR_RETURN(options.estimator, TrainOpEstimator::Create(config, std::move(estimator)));
  options.train_steps = last_step;
  options.eval_delay = absl::ZeroDuration();
  options.stop = program->stop();
  ASSIGN_OR_RETURN(const auto experiment, Experiment::Create(std::move(options)));
  ASSIGN_OR_RETURN(const ExperimentResult result, experiment->ContinuousTrainAndEval());
  std::cout << "accuracy " << (result.evaluation ? absl::StrCat(result.evaluation->metrics.at("accuracy")) : "none")
            << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::train

int main(int argc, char** argv) {
  using namespace lockstep::train;  // NOLINT
  Program program(argc, argv,
                  "Trains until a step function, a predicate, a hook, a monitor, the body or the input ends the run.");
  std::string loop = "kwargs";
  int64_t last_step = 1000;
  program.command_line().AddFlag("loop", "NAME",
                                 "kwargs, step_function, hook, empty, monitor, supervisor or experiment", &loop);
  program.command_line().AddFlag("last_step", "N", "chief: the global step at which the run ends", &last_step);
  return program.Run([&] {
    if (loop == "supervisor") return TrainWithSupervisor(&program, last_step);
    if (loop == "experiment") return TrainAndEvaluate(&program, last_step);
    return loop == "monitor" ? TrainWithGraphActions(&program, last_step) : TrainWithSlim(&program, loop, last_step);
  });
}
