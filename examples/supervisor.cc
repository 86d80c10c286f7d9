// Trains a softmax regression under a Supervisor. Its flags make it a chief, a worker, or all in one process.
//
//   ./lockstep exec //examples:supervisor --logdir=/tmp/run                            all in this process
//   ./lockstep exec //examples:supervisor --logdir=/tmp/run --listen=127.0.0.1:2222    the chief, which also computes
//   ./lockstep exec //examples:supervisor --master=grpc://127.0.0.1:2222               a worker
#include "lockstep/train/supervisor/supervisor.h"

#include <iostream>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/program/program.h"

using lockstep::train::CreateTrainOp;
using lockstep::train::Program;
using lockstep::train::Session;
using lockstep::train::StepResult;
using lockstep::train::Supervisor;
using lockstep::train::SupervisorOptions;
using lockstep::train::TrainOp;

constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 10 } } loss { softmax_cross_entropy {} } }
  input {
    split { name: "train" synthetic { examples: 4096 shape: 64 classes: 10 } }
    batch_size: 32
  }
  optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
  training { steps: 500 replicas_to_aggregate: 4 }
)";

absl::Status Train(Program* program) {
  ASSIGN_OR_RETURN(TrainOp train_op, CreateTrainOp(kRun));
  ASSIGN_OR_RETURN(train_op, train_op.WithSpec(program->WithFlags(train_op.spec)));
  SupervisorOptions options;
  options.session = program->Options(train_op);
  options.save_model_period = absl::Seconds(60);
  options.save_summaries_period = absl::Seconds(10);
  ASSIGN_OR_RETURN(const auto supervisor, Supervisor::Create(options));
  Supervisor::PrepareOptions prepare;
  prepare.recover = true;  // opens a new session if the chief was restarted
  return supervisor->ManagedSession(
      [&](Session& session) -> absl::Status {
        while (!supervisor->ShouldStop()) {
          ASSIGN_OR_RETURN(const StepResult step, session.Run(train_op));  // OutOfRange if the run is over
          if (step.global_step % 100 == 0) std::cout << "step " << step.global_step << ": loss " << step.loss << "\n";
        }
        return absl::OkStatus();
      },
      prepare);
}

int main(int argc, char** argv) {
  Program program(argc, argv, "Trains a softmax regression on synthetic data under a Supervisor.");
  return program.Run([&] { return Train(&program); });
}
