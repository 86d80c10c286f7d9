#include "lockstep/train/session/worker_session.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/summary/testing/events_of.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/train/session/open_session.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::Not;

class WorkerSessionTest : public ::testing::Test {
 protected:
  explicit WorkerSessionTest(int64_t steps = 12, int64_t slots = 2)
      : op_(CreateTrainOp(absl::StrCat(R"(
          model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
          optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
          input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
          training { replicas_to_aggregate: )",
                                       slots, " steps: ", steps, "}"))
                .value()) {
    SessionOptions options;
    options.op = op_;
    options.logdir = "run";
    options.fs = &fs_;
    options.listen = "127.0.0.1:0";
    options.local_workers = 0;
    options.port_file = "run.port";
    // Open blocks until a worker has declared the model.
    std::thread opening([&] { chief_ = ChiefSession::Open(options).value(); });
    while (!fs_.Exists("run.port").value()) std::this_thread::yield();
    worker_options_.op = op_;
    worker_options_.is_chief = false;
    worker_options_.master = absl::StrCat("grpc://127.0.0.1:", std::stoi(ReadFile(&fs_, "run.port").value()));
    worker_ = OpenSession(worker_options_).value();
    opening.join();
  }

  const TrainOp op_;
  MemoryFileSystem fs_;
  SessionOptions worker_options_;
  std::unique_ptr<ChiefSession> chief_;
  std::unique_ptr<Session> worker_;
};

TEST_F(WorkerSessionTest, RunsBlocksAndLearnsWhatBecameOfThem) {
  TrainOp other = op_;
  other.spec.mutable_model()->mutable_layer(0)->set_name("other");
  EXPECT_TRUE(absl::IsInvalidArgument(worker_->Run(other).status()));
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
    EXPECT_EQ(result->outcome, v1::CONTRIBUTION_ACCEPTED);
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

v1::Summary Mine(const std::string& tag) {
  v1::Summary summary;
  summary.add_value()->set_tag(tag);
  return summary;
}

// Returns the events of the run, which has one event file.
std::vector<std::string> EventsOfRun(FileSystem* fs) {
  const std::vector<std::string> names = fs->ListDirectory("run").value();
  for (const std::string& name : names) {
    if (absl::StrContains(name, "tfevents")) return EventsOf(fs, absl::StrCat("run/", name));
  }
  ADD_FAILURE() << "there is no event file";
  return {};
}

TEST_F(WorkerSessionTest, ASummaryIsWrittenAtTheStepThatIsGiven) {
  EXPECT_TRUE(worker_->AddSummary(Mine("early"), absl::nullopt).ok());
  EXPECT_TRUE(worker_->AddSummary(Mine("given"), 1234).ok());
  chief_->AllowThrough(StepMachine::kNoLimit);
  const int64_t step = worker_->Run(op_)->global_step;
  EXPECT_TRUE(worker_->AddSummary(Mine("after"), absl::nullopt).ok());
  // A million bytes, too many for a slot's report.
  EXPECT_TRUE(worker_->AddSummary(Mine(std::string(1000000, 'x')), 1).ok());
  const absl::Status large = worker_->AddSummary(Mine(std::string(1 << 20, 'x')), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(large)) << large;
  while (worker_->Run(op_).ok()) {
  }
  EXPECT_TRUE(chief_->Close().ok());
  EXPECT_TRUE(worker_->Close().ok());
  EXPECT_TRUE(absl::IsOutOfRange(worker_->AddSummary(Mine("late"), 1))) << "the caller is told that it is dropped";
  const std::vector<std::string> events = EventsOfRun(&fs_);
  EXPECT_THAT(events, Contains("early 0"));
  EXPECT_THAT(events, Contains("given 1234"));
  EXPECT_THAT(events, Contains(absl::StrCat("after ", step)));
  EXPECT_THAT(events, Contains(absl::StrCat(std::string(1000000, 'x'), " 1")));
  EXPECT_THAT(events, Not(Contains("late 1")));
}

// Each change ends the streams of all workers, but the workers' programs must not notice.
TEST_F(WorkerSessionTest, WhatTheChiefSetsInterruptsNoRun) {
  std::thread computing([&] {
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

class OneSlotTest : public WorkerSessionTest {
 protected:
  OneSlotTest() : WorkerSessionTest(200, /*slots=*/1) {}
};

// With one slot per step, most blocks of one of the two workers are duplicates.
TEST_F(OneSlotTest, WritesSummariesOfDuplicateBlocks) {
  std::unique_ptr<Session> other = OpenSession(worker_options_).value();
  std::atomic<int64_t> accepted[2] = {{0}, {0}};
  const auto runs = [&](Session* worker, int index) {
    return std::thread([this, worker, index, &accepted] {
      while (true) {
        const auto result = worker->Run(op_);
        if (absl::IsOutOfRange(result.status())) return;
        ASSERT_TRUE(result.ok()) << result.status();
        const absl::Status added = worker->AddSummary(Mine(absl::StrCat("worker-", index)), result->global_step);
        EXPECT_TRUE(added.ok() || absl::IsOutOfRange(added)) << added;
        if (added.ok()) ++accepted[index];
      }
    });
  };
  std::thread first = runs(worker_.get(), 0), second = runs(other.get(), 1);
  chief_->AllowThrough(StepMachine::kNoLimit);
  first.join();
  second.join();
  EXPECT_TRUE(chief_->Close().ok());
  EXPECT_TRUE(worker_->Close().ok());
  EXPECT_TRUE(other->Close().ok());
  const std::vector<std::string> events = EventsOfRun(&fs_);
  for (int i = 0; i < 2; ++i) {
    const std::string tag = absl::StrCat("worker-", i, " ");
    EXPECT_EQ(std::count_if(events.begin(), events.end(),
                            [&](const std::string& event) { return absl::StartsWith(event, tag); }),
              accepted[i]);
  }
  EXPECT_GE(accepted[0] + accepted[1], 199) << "the block of the last step ends the run";
}

class LongWorkerSessionTest : public WorkerSessionTest {
 protected:
  static constexpr int64_t kSteps = 100;

  LongWorkerSessionTest() : WorkerSessionTest(100000000) {}

  // Calls `change` between the steps of a run with two workers. Returns the number of blocks that received no verdict
  // because the session had ended.
  int64_t RunWithChanges(const std::function<absl::Status(int64_t step)>& change) {
    chief_->AllowThrough(0);
    std::unique_ptr<Session> other = OpenSession(worker_options_).value();
    std::atomic<int64_t> blocks{0}, untold{0};
    const auto computes = [&](Session* worker) {
      return std::thread([&, worker] {
        while (true) {
          const auto result = worker->Run(op_);
          if (absl::IsOutOfRange(result.status())) return;
          ASSERT_TRUE(result.ok()) << result.status();
          ++blocks;
          if (result->outcome == v1::CONTRIBUTION_NONE) ++untold;
        }
      });
    };
    std::thread first = computes(worker_.get()), second = computes(other.get());
    for (int64_t step = 1; step <= kSteps; ++step) {
      chief_->AllowThrough(step - 1);
      EXPECT_EQ(chief_->Run(op_)->global_step, step);
      const absl::Status changed = change(step);
      EXPECT_TRUE(changed.ok()) << changed;
    }
    // If a chief ends a session before the worker knows that its block was sent, Run returns the next block.
    EXPECT_GE(blocks, kSteps / 2);
    EXPECT_TRUE(chief_->RequestStop("enough").ok());
    EXPECT_TRUE(chief_->Close().ok());
    first.join();
    second.join();
    EXPECT_TRUE(worker_->Close().ok());
    EXPECT_TRUE(other->Close().ok());
    return untold;
  }
};

TEST_F(LongWorkerSessionTest, SettingVariablesEndsNoSession) {
  const int64_t untold = RunWithChanges([this](int64_t) {
    return chief_->Assign({NamedFloats("logits/bias", {3}, {0, 1, 2}).value()});
  });
  EXPECT_EQ(untold, 0);
}

TEST_F(LongWorkerSessionTest, ChangingTheRateEndsNoSession) {
  const int64_t untold = RunWithChanges([this](int64_t step) {
    config::v1::OptimizerConfig optimizer = op_.spec.optimizer();
    optimizer.mutable_learning_rate()->set_initial(0.01f * static_cast<float>(step));
    optimizer.mutable_momentum()->set_momentum(step % 2 == 0 ? 0.5f : 0.9f);
    return chief_->ChangeOptimizer(optimizer);
  });
  EXPECT_EQ(untold, 0);
}

TEST_F(LongWorkerSessionTest, ChangingWhatWorkersComputeWithEndsNoSession) {
  const int64_t untold = RunWithChanges([this](int64_t step) {
    SettingsChange change;
    change.batch_size = 1 + step / 3 % 5;
    change.optimizer = op_.spec.optimizer();
    change.optimizer->mutable_clip()->set_by_value(0.01f * static_cast<float>(step));
    return chief_->ChangeSettings(change);
  });
  EXPECT_EQ(untold, 0);
}

}  // namespace
}  // namespace lockstep::train
