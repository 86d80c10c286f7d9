// Settings that a program changes during the run, and moving averages, with real chiefs and workers in this process.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/chief_session.h"
#include "lockstep/train/open_session.h"
#include "lockstep/train/worker_session.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

class SessionSettingsTest : public ::testing::Test {
 protected:
  SessionSettingsTest() { Configure(""); }

  void Configure(const std::string& optimizer) {
    op_ = CreateTrainOp(absl::StrCat(R"(
      model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
      input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
      training { replicas_to_aggregate: 2 steps: 12 }
      checkpoint { stop_seconds: 0.1 }
      optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } )",
                                     optimizer, "}"))
              .value();
  }
  // What the tests change to: another rate, another setting of the rule, and what workers do to gradients.
  config::v1::OptimizerConfig Changed() {
    config::v1::OptimizerConfig optimizer = op_.spec.optimizer();
    optimizer.mutable_learning_rate()->set_initial(0.01f);
    optimizer.mutable_momentum()->set_momentum(0.5f);
    optimizer.mutable_clip()->set_by_global_norm(0.1f);
    return optimizer;
  }

  SessionOptions ChiefOptions() {
    SessionOptions options;
    options.op = op_;
    options.logdir = logdir_;
    options.fs = &fs_;
    return options;
  }
  std::unique_ptr<ChiefSession> OpenChief(const SessionOptions& options) {
    auto session = ChiefSession::Open(options);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  std::unique_ptr<ChiefSession> OpenChief() { return OpenChief(ChiefOptions()); }
  // Held at `step`.
  void RunTo(ChiefSession* session, int64_t step) {
    session->AllowThrough(step - 1);
    int64_t at = session->GlobalStep().value();
    while (at < step) {
      const auto result = session->Run(op_);
      ASSERT_TRUE(result.ok()) << result.status();
      at = result->global_step;
    }
  }
  void RunToTheEnd(ChiefSession* session) {
    session->AllowThrough(StepMachine::kNoLimit);
    while (session->Run(op_).ok()) {
    }
    const absl::Status closed = session->Close();
    EXPECT_TRUE(closed.ok()) << closed;
  }
  std::unique_ptr<BundleReader> Checkpoint(int64_t step) {
    auto reader = BundleReader::Open(&memory_, absl::StrCat(logdir_, "/model.ckpt-", step));
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  std::string DigestOf(int64_t step) {
    const auto reader = Checkpoint(step);
    return reader == nullptr ? "" : CheckpointDigest(*reader).value();
  }
  v1::RunRecord Record() { return ReadRunRecord(&memory_, logdir_).value().value(); }
  // The same change, made when the run was started again.
  std::string DigestOfAChangeAtAStart(int64_t step) {
    logdir_ = "started";
    RunTo(OpenChief().get(), step);
    SessionOptions options = ChiefOptions();
    *options.op.spec.mutable_optimizer() = Changed();
    options.change_settings = true;
    RunToTheEnd(OpenChief(options).get());
    return DigestOf(12);
  }

  TrainOp op_;
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  std::string logdir_ = "run";
};

TEST_F(SessionSettingsTest, AChangeBetweenTwoStepsIsOneThatIsMadeAtAStart) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "live";
  const auto session = OpenChief();
  RunTo(session.get(), 5);
  ASSERT_TRUE(session->ChangeOptimizer(Changed()).ok());
  ASSERT_EQ(Record().change_size(), 1);
  EXPECT_EQ(Record().change(0).step(), 5);
  EXPECT_TRUE(Record().change(0).by_program());
  EXPECT_FLOAT_EQ(Record().change(0).before().optimizer().learning_rate().initial(), 0.05f);
  EXPECT_FLOAT_EQ(Record().config().optimizer().learning_rate().initial(), 0.01f);
  EXPECT_NE(DigestOf(5), "") << "the checkpoint is there before any token";
  EXPECT_TRUE(session->ChangeOptimizer(Changed()).ok());
  EXPECT_EQ(Record().change_size(), 1) << "asked for again it changes nothing";
  RunToTheEnd(session.get());
  EXPECT_EQ(DigestOf(12), digest);
}

TEST_F(SessionSettingsTest, AKilledProgramThatStartsAsBeforeContinuesWithTheChange) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "killed";
  {
    const auto session = OpenChief();
    RunTo(session.get(), 5);
    ASSERT_TRUE(session->ChangeOptimizer(Changed()).ok());
    RunTo(session.get(), 8);
    fs_.KillAfter(0);
  }
  fs_.Heal();
  const auto session = OpenChief();
  EXPECT_EQ(session->GlobalStep().value(), 5) << "the checkpoint of the change";
  RunToTheEnd(session.get());
  EXPECT_EQ(DigestOf(12), digest);
  EXPECT_EQ(Record().change_size(), 1);
}

TEST_F(SessionSettingsTest, AChangeWhoseCheckpointWasNotWrittenIsMadeAgain) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "refused";
  {
    const auto session = OpenChief();
    RunTo(session.get(), 5);
    fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-5", absl::PermissionDeniedError("read-only"));
    const absl::Status status = session->ChangeOptimizer(Changed());
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("settings were changed at step 5"));
    EXPECT_EQ(Record().change_size(), 1);
  }
  fs_.Heal();
  const auto session = OpenChief();
  EXPECT_EQ(session->GlobalStep().value(), 0);
  EXPECT_EQ(Record().change_size(), 0) << "the steps up to 5 are computed with the settings of before";
  RunTo(session.get(), 5);
  ASSERT_TRUE(session->ChangeOptimizer(Changed()).ok());
  RunToTheEnd(session.get());
  EXPECT_EQ(DigestOf(12), digest);
}

TEST_F(SessionSettingsTest, WorkersOfOtherProcessesFollow) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "workers";
  SessionOptions options = ChiefOptions();
  options.listen = "127.0.0.1:0";
  options.port_file = "port";
  std::unique_ptr<ChiefSession> chief;
  std::thread opening([&] { chief = OpenChief(options); });
  while (!memory_.Exists("port").value()) std::this_thread::yield();
  SessionOptions worker;
  worker.op = op_;
  worker.is_chief = false;
  worker.master = absl::StrCat("grpc://127.0.0.1:", std::stoi(ReadFile(&memory_, "port").value()));
  auto session = OpenSession(worker).value();
  opening.join();
  std::thread computing([&] {
    while (!session->ShouldStop()) {
      const absl::Status status = session->Run(op_).status();
      if (absl::IsOutOfRange(status)) return;
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
    }
  });
  RunTo(chief.get(), 5);
  EXPECT_TRUE(absl::IsFailedPrecondition(session->ChangeOptimizer(Changed())));
  ASSERT_TRUE(chief->ChangeOptimizer(Changed()).ok());
  RunToTheEnd(chief.get());
  computing.join();
  EXPECT_EQ(DigestOf(12), digest);
}

TEST_F(SessionSettingsTest, WhatCannotChangeIsRefusedByName) {
  const auto session = OpenChief();
  RunTo(session.get(), 1);
  config::v1::OptimizerConfig wrong = Changed();
  wrong.mutable_momentum()->set_momentum(1.5f);
  EXPECT_THAT(std::string(session->ChangeOptimizer(wrong).message()), HasSubstr("optimizer.momentum.momentum is 1.5"));
  wrong = Changed();
  wrong.mutable_sgd();
  EXPECT_THAT(std::string(session->ChangeOptimizer(wrong).message()), HasSubstr("of another kind"));
  wrong = Changed();
  wrong.mutable_moving_average()->set_decay(0.9f);
  EXPECT_THAT(std::string(session->ChangeOptimizer(wrong).message()), HasSubstr("ExponentialMovingAverage"));
  EXPECT_EQ(Record().change_size(), 0);
  RunToTheEnd(session.get());
}

TEST_F(SessionSettingsTest, MovingAveragesFollowTheVariablesAndSurviveAKill) {
  Configure("moving_average { decay: 0.75 num_updates: true }");
  std::string digest;
  for (const bool killed : {false, true}) {
    logdir_ = killed ? "killed" : "whole";
    auto session = OpenChief();
    const auto read = [&] {
      auto values = session->Read({"logits/bias", "logits/bias/ExponentialMovingAverage"});
      EXPECT_TRUE(values.ok()) << values.status();
      return *std::move(values);
    };
    const ReadResult first = read();
    std::vector<float> expected(3);
    for (int i = 0; i < 3; ++i) {
      expected[i] = first.values[0].value.flat<float>()[i];
      EXPECT_EQ(first.values[1].value.flat<float>()[i], expected[i]) << "they begin with the first values";
    }
    for (int64_t step = 1; step <= 6; ++step) {
      RunTo(session.get(), step);
      const ReadResult now = read();
      const auto n = static_cast<float>(step);
      const float share = 1.0f - std::min(0.75f, (1.0f + n) / (10.0f + n));
      for (int i = 0; i < 3; ++i) {
        expected[i] -= (expected[i] - now.values[0].value.flat<float>()[i]) * share;
        EXPECT_EQ(now.values[1].value.flat<float>()[i], expected[i]) << "step " << step;
      }
    }
    if (killed) {
      ASSERT_TRUE(session->Save().ok());
      fs_.KillAfter(0);
      session.reset();
      fs_.Heal();
      session = OpenChief();
      EXPECT_EQ(session->GlobalStep().value(), 6);
    }
    RunToTheEnd(session.get());
    if (killed) {
      EXPECT_EQ(DigestOf(12), digest);
    } else {
      digest = DigestOf(12);
      EXPECT_TRUE(Checkpoint(12)->Contains("logits/kernel/ExponentialMovingAverage"));
    }
  }
  // A run that keeps none cannot begin to.
  Configure("");
  SessionOptions without = ChiefOptions();
  without.change_settings = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession(without).status()));
}

}  // namespace
}  // namespace lockstep::train
