// Trains a softmax regression with a session. Its flags make it a chief, a worker, or all in one process.
//
//   ./lockstep exec //examples:session --logdir=/tmp/run --steps=500                 all in this process
//   ./lockstep exec //examples:session --logdir=/tmp/run --listen=127.0.0.1:2222     the chief, which computes as well
//   ./lockstep exec //examples:session --master=grpc://127.0.0.1:2222                a worker
#include <iostream>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/program/program.h"
#include "lockstep/train/session/open_session.h"

using lockstep::train::CreateTrainOp;
using lockstep::train::OpenSession;
using lockstep::train::Program;
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
  ASSIGN_OR_RETURN(const auto session, OpenSession(program->Options(train_op)));
  while (!session->ShouldStop()) {
    const auto result = session->Run(train_op);
    if (absl::IsAborted(result.status())) continue;  // the chief was restarted, and the session is open again
    if (absl::IsOutOfRange(result.status())) break;  // the run is over
    RETURN_IF_ERROR(result.status());
    if (result->global_step % 100 == 0)
      std::cout << "step " << result->global_step << ": loss " << result->loss << "\n";
  }
  return session->Close();
}

int main(int argc, char** argv) {
  Program program(argc, argv, "Trains a softmax regression on synthetic data.");
  return program.Run([&] { return Train(&program); });
}
