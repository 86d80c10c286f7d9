// Trains a softmax regression in a MonitoredTrainingSession until a hook of the chief ends the run. Its flags make it
// a chief, a worker, or all in one process.
//
//   ./lockstep exec //examples:monitored_session --logdir=/tmp/run                            all in this process
//   ./lockstep exec //examples:monitored_session --logdir=/tmp/run --listen=127.0.0.1:2222    the chief
//   ./lockstep exec //examples:monitored_session --master=grpc://127.0.0.1:2222               a worker
#include <iostream>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/stop/stop_at_step_hook.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/program/program.h"

using lockstep::train::CreateTrainOp;
using lockstep::train::MonitoredSession;
using lockstep::train::MonitoredTrainingOptions;
using lockstep::train::MonitoredTrainingSession;
using lockstep::train::Program;
using lockstep::train::StepResult;
using lockstep::train::StopAtStepHook;
using lockstep::train::TrainOp;
using lockstep::train::WithSession;

constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 10 } } loss { softmax_cross_entropy {} } }
  input {
    split { name: "train" synthetic { examples: 4096 shape: 64 classes: 10 } }
    batch_size: 32
  }
  optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
  training { unbounded: true replicas_to_aggregate: 4 }
)";

absl::Status Train(Program* program, int64_t last_step) {
  ASSIGN_OR_RETURN(TrainOp train_op, CreateTrainOp(kRun));
  ASSIGN_OR_RETURN(train_op, train_op.WithSpec(program->WithFlags(train_op.spec)));
  ASSIGN_OR_RETURN(const auto stop_hook, StopAtStepHook::Create({absl::nullopt, last_step}));
  MonitoredTrainingOptions options;
  options.session = program->Options(train_op);
  options.session.program = "monitored_session";  // the hook is part of the run
  options.chief_only_hooks = {stop_hook.get()};
  options.save_checkpoint_steps = 50;
  return WithSession(MonitoredTrainingSession(options), [&](MonitoredSession& session) -> absl::Status {
    while (!session.ShouldStop()) {
      ASSIGN_OR_RETURN(const StepResult step, session.Run(train_op));  // OutOfRange if the run is over
      if (step.global_step % 100 == 0) std::cout << "step " << step.global_step << ": loss " << step.loss << "\n";
    }
    return absl::OkStatus();
  });
}

int main(int argc, char** argv) {
  Program program(argc, argv, "Trains a softmax regression on synthetic data in a MonitoredTrainingSession.");
  int64_t last_step = 500;
  program.command_line().AddFlag("last_step", "N", "chief: the global step at which the run ends", &last_step);
  return program.Run([&] { return Train(&program, last_step); });
}
