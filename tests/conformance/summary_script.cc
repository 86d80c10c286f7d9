// A process of a run that writes every kind of summary, for a test that reads them with TensorBoard.
// Usage: summary_script ROLE API LOGDIR ADDRESS_FILE STEPS
//   ROLE  "chief", which serves but computes nothing, or a worker's name. ADDRESS_FILE gets the chief's address.
//   API   supervisor, monitored, slim or estimator.
// The chief writes the library's summaries: its scalars every 5 steps, and the gradients' summaries every 10 steps.
// Under a Supervisor, it also writes a histogram "weights" and an image "picture" at step 3. For each step that a
// worker makes, it writes "<name>/given" at 1000 plus that step, and "<name>/own" without a step. It prints "given
// STEP" or "own STEP" for each summary that was accepted.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/tf_config.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/train/learn/run_config.h"
#include "lockstep/train/learn/train_op_estimator.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/slim/create_train_op.h"
#include "lockstep/train/slim/learning.h"
#include "lockstep/train/supervisor/supervisor.h"

namespace lockstep::train {
namespace {

constexpr int64_t kScalars = 5;
constexpr int64_t kGradients = 10;

struct Arguments {
  std::string role, api, logdir, address_file;
  int64_t steps = 0;
  bool is_chief() const { return role == "chief"; }
};

// Uses 24 layers, so that the histograms of the gradients exceed 64 KiB.
absl::StatusOr<TrainOp> MakeOp(int64_t steps) {
  std::string loss = "model { ";
  for (int i = 0; i < 24; ++i) {
    absl::StrAppend(&loss, "layer { name: 'h", i, "' dense { units: 32 activation: TANH } } ");
  }
  absl::StrAppend(&loss, R"(layer { name: 'logits' dense { units: 3 } } loss { softmax_cross_entropy {} } }
      input { split { name: 'train' synthetic { examples: 96 shape: 8 classes: 3 } } batch_size: 4 }
      checkpoint { every_steps: 5 } training { replicas_to_aggregate: 2 steps: )",
                  steps, " }");
  slim::CreateTrainOpOptions options;
  options.summarize_gradients = true;
  options.summarize_every_n_steps = kGradients;
  return slim::CreateTrainOp(loss, "sgd {} learning_rate { initial: 0.01 } clip { by_norm: 0.001 }", options);
}

SessionOptions SessionOf(const Arguments& arguments, const TrainOp& op) {
  SessionOptions session;
  session.op = op;
  session.is_chief = arguments.is_chief();
  if (session.is_chief) {
    session.logdir = arguments.logdir;
    session.listen = "127.0.0.1:0";
    session.address_file = arguments.address_file;
    session.advertise = "127.0.0.1";
    session.local_workers = 0;
  } else {
    session.name = arguments.role;
    session.master = absl::StrCat("file:", arguments.address_file);
  }
  return session;
}

v1::Summary Scalar(const std::string& tag, int64_t value) { return ScalarSummary(tag, static_cast<double>(value)); }

// A worker's loop, which writes its own summaries after each Run. Returns OutOfRange at the end of the run.
absl::Status WorkerLoop(const std::string& name, const TrainOp& op, Session& session) {
  while (true) {
    ASSIGN_OR_RETURN(const StepResult result, session.Run(op));
    const int64_t step = result.global_step;
    RETURN_IF_ERROR(session.AddSummary(Scalar(absl::StrCat(name, "/given"), step), step + 1000));
    std::cout << "given " << step + 1000 << std::endl;
    RETURN_IF_ERROR(session.AddSummary(Scalar(absl::StrCat(name, "/own"), step)));
    std::cout << "own " << step << std::endl;
  }
}

absl::Status ChiefLoop(const TrainOp& op, Session& session, Supervisor* supervisor) {
  while (true) {
    ASSIGN_OR_RETURN(const StepResult result, session.Run(op));
    if (result.global_step != 3 || supervisor == nullptr) continue;
    SummaryBuilder builder;
    RETURN_IF_ERROR(builder.AddHistogram("weights", {-1, 0, 2}));
    RETURN_IF_ERROR(builder.AddImage("picture", 1, 2, 1, {0, 255}));
    RETURN_IF_ERROR(supervisor->SummaryComputed(builder.Build(3).summary(), 3));
  }
}

absl::Status RunSupervisor(const Arguments& arguments, const TrainOp& op) {
  SupervisorOptions options;
  options.session = SessionOf(arguments, op);
  options.save_summaries_period = absl::Milliseconds(1);
  options.save_scalars_steps = kScalars;
  ASSIGN_OR_RETURN(const auto supervisor, Supervisor::Create(options));
  return supervisor->ManagedSession([&](Session& session) {
    return arguments.is_chief() ? ChiefLoop(op, session, supervisor.get()) : WorkerLoop(arguments.role, op, session);
  });
}

absl::Status RunMonitored(const Arguments& arguments, const TrainOp& op) {
  MonitoredTrainingOptions options;
  options.session = SessionOf(arguments, op);
  options.save_checkpoint_steps = 5;
  options.save_summaries_steps = 1;
  options.save_scalars_steps = kScalars;
  return WithSession(MonitoredTrainingSession(options), [&](MonitoredSession& session) -> absl::Status {
    while (!session.ShouldStop()) {
      ASSIGN_OR_RETURN(const StepResult result, session.Run(op));
      if (arguments.is_chief()) continue;
      RETURN_IF_ERROR(session.raw_session()->AddSummary(Scalar(absl::StrCat(arguments.role, "/given"), 1),
                                                        result.global_step + 1000));
      std::cout << "given " << result.global_step + 1000 << std::endl;
    }
    return absl::OkStatus();
  });
}

absl::Status RunSlim(const Arguments& arguments, const TrainOp& op) {
  slim::TrainOptions options;
  options.session = SessionOf(arguments, op);
  options.save_summaries_secs = absl::Milliseconds(1);
  options.save_scalars_steps = kScalars;
  options.log_every_n_steps = 0;
  return slim::Train(op, arguments.logdir, options).status();
}

absl::Status RunEstimator(const Arguments& arguments, const TrainOp& op) {
  RunConfigOptions config;
  config.model_dir = arguments.logdir;
  config.save_summary_steps = 1;
  config.save_scalars_steps = kScalars;
  TfConfig environment;
  environment.task_type = arguments.is_chief() ? "chief" : "worker";
  ASSIGN_OR_RETURN(const RunConfig run_config, RunConfig::Create(config, environment));
  TrainOpEstimatorOptions options;
  options.session = SessionOf(arguments, op);
  ASSIGN_OR_RETURN(const auto estimator, TrainOpEstimator::Create(run_config, options));
  return estimator->Train({});
}

absl::Status Run(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const TrainOp op, MakeOp(arguments.steps));
  if (arguments.api == "supervisor") return RunSupervisor(arguments, op);
  if (arguments.api == "monitored") return RunMonitored(arguments, op);
  if (arguments.api == "slim") return RunSlim(arguments, op);
  if (arguments.api == "estimator") return RunEstimator(arguments, op);
  return absl::InvalidArgumentError(absl::StrCat("no API is ", arguments.api));
}

}  // namespace
}  // namespace lockstep::train

int main(int argc, char** argv) {
  lockstep::train::Arguments arguments;
  if (argc != 6 || !absl::SimpleAtoi(argv[5], &arguments.steps)) {
    std::cerr << "usage: summary_script ROLE API LOGDIR ADDRESS_FILE STEPS\n";
    return 2;
  }
  arguments.role = argv[1];
  arguments.api = argv[2];
  arguments.logdir = argv[3];
  arguments.address_file = argv[4];
  const absl::Status status = lockstep::train::Run(arguments);
  if (status.ok() || absl::IsOutOfRange(status)) return 0;
  std::cerr << status << "\n";
  return 1;
}
