#include "lockstep/train/worker_session.h"

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/chief_session.h"
#include "lockstep/train/open_session.h"

namespace lockstep::train {
namespace {

TEST(WorkerSessionTest, RunsBlocksAndLearnsWhatBecameOfThem) {
  const TrainOp op = CreateTrainOp(R"(
    model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
    optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
    input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
    training { replicas_to_aggregate: 2 steps: 12 }
  )")
                         .value();
  MemoryFileSystem fs;
  SessionOptions options;
  options.op = op;
  options.logdir = "run";
  options.fs = &fs;
  options.listen = "127.0.0.1:0";
  options.local_workers = 0;
  options.port_file = "run.port";
  std::unique_ptr<ChiefSession> chief;
  // Until a worker has declared the model.
  std::thread opening([&] { chief = ChiefSession::Open(options).value(); });
  while (!fs.Exists("run.port").value()) std::this_thread::yield();
  SessionOptions worker;
  worker.op = op;
  worker.is_chief = false;
  worker.master = absl::StrCat("grpc://127.0.0.1:", std::stoi(ReadFile(&fs, "run.port").value()));
  const auto session = OpenSession(worker).value();
  opening.join();
  chief->AllowThrough(StepMachine::kNoLimit);
  int blocks = 0;
  while (!session->ShouldStop()) {
    const auto step = session->NextStep();
    if (absl::IsOutOfRange(step.status())) break;
    ASSERT_TRUE(step.ok()) << step.status();
    const auto result = session->Run(op);
    if (absl::IsOutOfRange(result.status())) break;
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->global_step, *step + 1);
    EXPECT_EQ(result->fate, v1::CONTRIBUTION_ACCEPTED);
    EXPECT_GT(result->loss, 0);
    ++blocks;
  }
  EXPECT_GE(blocks, 11) << "that of the last step ends the run";
  int64_t last = 0;
  while (!chief->ShouldStop()) {
    const auto result = chief->Run(op);
    if (absl::IsOutOfRange(result.status())) break;
    ASSERT_TRUE(result.ok()) << result.status();
    last = result->global_step;
  }
  EXPECT_EQ(last, 12);
  EXPECT_TRUE(chief->Close().ok());
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace
}  // namespace lockstep::train
