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

class WorkerSessionTest : public ::testing::Test {
 protected:
  WorkerSessionTest() {
    SessionOptions options;
    options.op = op_;
    options.logdir = "run";
    options.fs = &fs_;
    options.listen = "127.0.0.1:0";
    options.local_workers = 0;
    options.port_file = "run.port";
    // Until a worker has declared the model.
    std::thread opening([&] { chief_ = ChiefSession::Open(options).value(); });
    while (!fs_.Exists("run.port").value()) std::this_thread::yield();
    SessionOptions worker;
    worker.op = op_;
    worker.is_chief = false;
    worker.master = absl::StrCat("grpc://127.0.0.1:", std::stoi(ReadFile(&fs_, "run.port").value()));
    worker_ = OpenSession(worker).value();
    opening.join();
  }

  const TrainOp op_ = CreateTrainOp(R"(
    model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
    optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
    input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
    training { replicas_to_aggregate: 2 steps: 12 }
  )")
                          .value();
  MemoryFileSystem fs_;
  std::unique_ptr<ChiefSession> chief_;
  std::unique_ptr<Session> worker_;
};

TEST_F(WorkerSessionTest, RunsBlocksAndLearnsWhatBecameOfThem) {
  chief_->AllowThrough(StepMachine::kNoLimit);
  int blocks = 0;
  while (!worker_->ShouldStop()) {
    const auto step = worker_->NextStep();
    if (absl::IsOutOfRange(step.status())) break;
    ASSERT_TRUE(step.ok()) << step.status();
    const auto result = worker_->Run(op_);
    if (absl::IsOutOfRange(result.status())) break;
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->global_step, *step + 1);
    EXPECT_EQ(result->fate, v1::CONTRIBUTION_ACCEPTED);
    EXPECT_GT(result->loss, 0);
    ++blocks;
  }
  EXPECT_GE(blocks, 11) << "that of the last step ends the run";
  int64_t last = 0;
  while (!chief_->ShouldStop()) {
    const auto result = chief_->Run(op_);
    if (absl::IsOutOfRange(result.status())) break;
    ASSERT_TRUE(result.ok()) << result.status();
    last = result->global_step;
  }
  EXPECT_EQ(last, 12);
  EXPECT_TRUE(chief_->Close().ok());
  EXPECT_TRUE(worker_->Close().ok());
}

// Each ends the streams of all workers, which is none of their programs' business.
TEST_F(WorkerSessionTest, WhatTheChiefSetsInterruptsNoRun) {
  std::thread computing([&] {
    v1::Summary summary;
    summary.add_value()->set_tag("mine");
    EXPECT_TRUE(worker_->AddSummary(summary, absl::nullopt).ok());
    while (true) {
      const absl::Status status = worker_->Run(op_).status();
      if (absl::IsOutOfRange(status)) return;
      EXPECT_TRUE(status.ok()) << status;
    }
  });
  for (int step = 1; step <= 11; ++step) {
    chief_->AllowThrough(step - 1);
    ASSERT_EQ(chief_->Run(op_)->global_step, step);
    if (step % 2 == 1) {
      EXPECT_TRUE(chief_->Assign({NamedFloats("logits/bias", {3}, {0, 1, 2}).value()}).ok());
    } else {
      config::v1::OptimizerConfig optimizer = op_.spec.optimizer();
      optimizer.mutable_learning_rate()->set_initial(0.01f * static_cast<float>(step));
      EXPECT_TRUE(chief_->ChangeOptimizer(optimizer).ok());
    }
  }
  chief_->AllowThrough(StepMachine::kNoLimit);
  EXPECT_TRUE(chief_->Run(op_).ok());
  EXPECT_TRUE(chief_->Close().ok());
  computing.join();
  EXPECT_TRUE(worker_->Close().ok());
}

}  // namespace
}  // namespace lockstep::train
