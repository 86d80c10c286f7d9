// Tests settings that a program changes during the run, and moving averages, with real chiefs and workers in this
// process.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/train/session/end/stop_signal.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/session/worker_session.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

// A worker's process, simulated by a thread.
class WorkerProcess {
 public:
  WorkerProcess(const TrainOp& op, const std::string& master) : op_(op) {
    SessionOptions options;
    options.op = op;
    options.is_chief = false;
    options.master = master;
    options.stop = &stop_;
    session_ = OpenSession(options).value();
    computing_ = std::thread([this] {
      while (!session_->ShouldStop()) {
        const absl::Status status = session_->Run(op_).status();
        if (absl::IsOutOfRange(status) || absl::IsCancelled(status)) return;
        // The chief may have been killed, or restarted with different settings.
        EXPECT_TRUE(status.ok() || absl::IsAborted(status) || absl::IsUnavailable(status)) << status;
      }
    });
  }
  ~WorkerProcess() { Join(); }

  // Stops the worker while it may hold a block.
  void Kill() {
    stop_.Request();
    Join();
  }
  // Waits until the worker's thread has ended.
  void Join() {
    if (computing_.joinable()) computing_.join();
  }
  Session* session() { return session_.get(); }

 private:
  const TrainOp op_;
  StopSignal stop_;
  std::unique_ptr<Session> session_;
  std::thread computing_;
};

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
  // Returns the optimizer that the tests change to, with a different learning rate, momentum and gradient clip.
  config::v1::OptimizerConfig Changed() {
    config::v1::OptimizerConfig optimizer = op_.spec.optimizer();
    optimizer.mutable_learning_rate()->set_initial(0.01f);
    optimizer.mutable_momentum()->set_momentum(0.5f);
    optimizer.mutable_clip()->set_by_global_norm(0.1f);
    return optimizer;
  }

  SettingsChange Change() {
    SettingsChange change;
    change.optimizer = Changed();
    return change;
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
  // Runs to `step` and holds the run there.
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
  // Returns the digest of a run in which a restart at `step` makes the same change.
  std::string DigestOfAChangeAtAStart(int64_t step, const SettingsChange& change) {
    logdir_ = "started";
    RunTo(OpenChief().get(), step);
    SessionOptions options = ChiefOptions();
    options.op.spec = WithSettings(op_.spec, change, /*examples=*/96).value();
    options.change_settings = true;
    RunToTheEnd(OpenChief(options).get());
    return DigestOf(12);
  }

  TrainOp op_;
  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  std::string logdir_ = "run";
};

// Selects the settings that a test changes.
struct Changes {
  const char* name;
  bool optimizer;
  bool batch_size;
};

class SessionChangesTest : public SessionSettingsTest, public ::testing::WithParamInterface<Changes> {
 protected:
  SettingsChange Change() {
    SettingsChange change;
    if (GetParam().optimizer) change.optimizer = Changed();
    if (GetParam().batch_size) change.batch_size = 7;
    return change;
  }
  std::string DigestOfAChangeAtAStart(int64_t step) {
    return SessionSettingsTest::DigestOfAChangeAtAStart(step, Change());
  }
  // Opens a chief without local workers, at the previous chief's port.
  std::unique_ptr<ChiefSession> OpenServingChief() {
    SessionOptions options = ChiefOptions();
    options.listen = absl::StrCat("127.0.0.1:", port_);
    options.local_workers = 0;
    options.port_file = "port";
    std::unique_ptr<ChiefSession> chief;
    std::thread opening([&] { chief = OpenChief(options); });
    while (!memory_.Exists("port").value()) std::this_thread::yield();
    port_ = std::stoi(ReadFile(&memory_, "port").value());
    if (workers_.empty()) StartWorker();  // The first worker declares the model.
    opening.join();
    return chief;
  }
  void StartWorker() {
    workers_.push_back(std::make_unique<WorkerProcess>(op_, absl::StrCat("grpc://127.0.0.1:", port_)));
  }

  int port_ = 0;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
};

INSTANTIATE_TEST_SUITE_P(All, SessionChangesTest,
                         ::testing::Values(Changes{"Optimizer", true, false}, Changes{"BatchSize", false, true},
                                           Changes{"Both", true, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(SessionChangesTest, AChangeBetweenTwoStepsIsOneThatIsMadeAtAStart) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "live";
  const auto session = OpenChief();
  RunTo(session.get(), 5);
  ASSERT_TRUE(session->ChangeSettings(Change()).ok());
  const v1::RunRecord record = Record();
  ASSERT_EQ(record.change_size(), 1);
  EXPECT_EQ(record.change(0).step(), 5);
  EXPECT_TRUE(record.change(0).by_program());
  const v1::RunRecord::Change::Settings& replaced = record.change(0).replaced();
  EXPECT_FLOAT_EQ(replaced.learning_rate().initial(), GetParam().optimizer ? 0.05f : 0);
  EXPECT_FLOAT_EQ(replaced.optimizer().momentum().momentum(), GetParam().optimizer ? 0.9f : 0);
  EXPECT_EQ(replaced.batch_size(), GetParam().batch_size ? 4 : 0);
  EXPECT_FLOAT_EQ(record.config().optimizer().learning_rate().initial(), GetParam().optimizer ? 0.01f : 0.05f);
  EXPECT_EQ(record.config().input().batch_size(), GetParam().batch_size ? 7 : 4);
  EXPECT_EQ(session->chief()->GetStatus().examples_per_step(), GetParam().batch_size ? 14 : 8);
  EXPECT_NE(DigestOf(5), "") << "the checkpoint is there before any token";
  EXPECT_TRUE(session->ChangeSettings(Change()).ok());
  EXPECT_EQ(Record().change_size(), 1) << "asked for again it changes nothing";
  RunToTheEnd(session.get());
  EXPECT_EQ(DigestOf(12), digest);
}

TEST_P(SessionChangesTest, AKilledProgramContinuesItsChange) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "killed";
  {
    const auto session = OpenChief();
    RunTo(session.get(), 5);
    ASSERT_TRUE(session->ChangeSettings(Change()).ok());
    RunTo(session.get(), 8);
    fs_.KillAfter(0);
  }
  fs_.Heal();
  const auto session = OpenChief();
  EXPECT_EQ(session->GlobalStep().value(), 5) << "the checkpoint of the change";
  EXPECT_EQ(session->chief()->GetStatus().examples_per_step(), GetParam().batch_size ? 14 : 8);
  RunToTheEnd(session.get());
  EXPECT_EQ(DigestOf(12), digest);
  EXPECT_EQ(Record().change_size(), 1);
}

TEST_P(SessionChangesTest, NoStepIgnoresAChangeInDoubt) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "unknown";
  {
    const auto session = OpenChief();
    ASSERT_TRUE(session->Save().ok()) << "of step 0; a first checkpoint that fails stops the session";
    RunTo(session.get(), 5);
    fs_.FailMatching(FaultyFileSystem::Operation::kSyncDirectory, logdir_, absl::InternalError("Input/output error"));
    EXPECT_TRUE(absl::IsInternal(session->ChangeSettings(Change())));
    EXPECT_EQ(Record().change_size(), 1) << "whoever starts now finds it";
    const absl::Status ended = session->Close();
    EXPECT_THAT(std::string(ended.message()), HasSubstr("whether it is on record that settings change at step 5"));
  }
  fs_.Heal();
  const auto session = OpenChief();
  RunTo(session.get(), 5);
  ASSERT_TRUE(session->ChangeSettings(Change()).ok());
  RunToTheEnd(session.get());
  EXPECT_EQ(DigestOf(12), digest);
}

TEST_P(SessionChangesTest, AnUnsavedChangeIsMadeAgain) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "refused";
  {
    const auto session = OpenChief();
    RunTo(session.get(), 5);
    fs_.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-5", absl::PermissionDeniedError("read-only"));
    const absl::Status status = session->ChangeSettings(Change());
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("settings were changed at step 5"));
    EXPECT_EQ(Record().change_size(), 1);
  }
  fs_.Heal();
  const auto session = OpenChief();
  EXPECT_EQ(session->GlobalStep().value(), 0);
  EXPECT_EQ(Record().change_size(), 0) << "the steps up to 5 are computed with the settings of before";
  RunTo(session.get(), 5);
  ASSERT_TRUE(session->ChangeSettings(Change()).ok());
  RunToTheEnd(session.get());
  EXPECT_EQ(DigestOf(12), digest);
}

// Kills one worker before the change, adds one after it, and keeps one throughout. Also kills the chief.
TEST_P(SessionChangesTest, WorkersOfOtherProcessesFollow) {
  const std::string digest = DigestOfAChangeAtAStart(5);
  logdir_ = "workers";
  auto chief = OpenServingChief();
  StartWorker();
  RunTo(chief.get(), 5);
  EXPECT_TRUE(absl::IsFailedPrecondition(workers_[0]->session()->ChangeSettings(Change())));
  workers_[1]->Kill();
  ASSERT_TRUE(chief->ChangeSettings(Change()).ok());
  StartWorker();
  RunTo(chief.get(), 8);
  fs_.KillAfter(0);
  chief.reset();
  fs_.Heal();
  workers_[0]->Kill();
  chief = OpenServingChief();
  StartWorker();
  EXPECT_EQ(chief->GlobalStep().value(), 5);
  RunToTheEnd(chief.get());
  for (const auto& worker : workers_) worker->Join();
  EXPECT_EQ(DigestOf(12), digest);
}

TEST_F(SessionSettingsTest, OneSettingAfterTheOtherIsBothAtOnce) {
  SettingsChange both = Change();
  both.batch_size = 8;
  const std::string digest = DigestOfAChangeAtAStart(5, both);
  logdir_ = "live";
  const auto session = OpenChief();
  RunTo(session.get(), 5);
  ASSERT_TRUE(session->ChangeBatchSize(8).ok());
  ASSERT_TRUE(session->ChangeOptimizer(Changed()).ok());
  EXPECT_EQ(Record().change_size(), 2);
  RunToTheEnd(session.get());
  EXPECT_EQ(DigestOf(12), digest);
}

TEST_F(SessionSettingsTest, ARateOfZeroFreezesTheVariables) {
  const auto session = OpenChief();
  RunTo(session.get(), 3);
  EXPECT_FLOAT_EQ(session->Settings()->optimizer().learning_rate().initial(), 0.05f);
  ASSERT_TRUE(session->ChangeLearningRate(0).ok());
  EXPECT_EQ(session->Settings()->optimizer().learning_rate().piecewise().values_size(), 1);
  const auto kernel = [&] {
    const ReadResult read = session->Read({"logits/kernel"}).value();
    const auto elements = read.values[0].value.flat<float>();
    return std::vector<float>(elements.begin(), elements.end());
  };
  const std::vector<float> before = kernel();
  RunTo(session.get(), 6);
  EXPECT_EQ(kernel(), before);
  ASSERT_TRUE(session->ChangeLearningRate(0.5f).ok());
  EXPECT_EQ(session->Settings()->optimizer().learning_rate().initial(), 0.5f);
  RunTo(session.get(), 7);
  EXPECT_NE(kernel(), before);
  RunToTheEnd(session.get());
}

TEST_F(SessionSettingsTest, SessionFillsInDefaultsOfFirstArrivals) {
  config::v1::RunSpec spec = op_.spec;
  spec.mutable_training()->mutable_first_arrivals();
  op_ = op_.WithSpec(std::move(spec)).value();
  EXPECT_FALSE(op_.spec.training().first_arrivals().has_initial_tokens());
  const config::v1::RunSpec settings = OpenChief()->Settings().value();
  EXPECT_EQ(settings.training().first_arrivals().total_replicas(), 2);
  EXPECT_EQ(settings.training().first_arrivals().initial_tokens(), 2);
}

TEST_F(SessionSettingsTest, WhatCannotChangeIsRefusedByName) {
  const auto session = OpenChief();
  RunTo(session.get(), 1);
  config::v1::OptimizerConfig wrong = Changed();
  wrong.mutable_momentum()->set_momentum(1.5f);
  EXPECT_THAT(std::string(session->ChangeOptimizer(wrong).message()), HasSubstr("optimizer.momentum.momentum is 1.5"));
  wrong = Changed();
  wrong.mutable_sgd();
  EXPECT_THAT(std::string(session->ChangeOptimizer(wrong).message()), HasSubstr("its kind differs from the run's"));
  wrong = Changed();
  wrong.mutable_moving_average()->set_decay(0.9f);
  EXPECT_THAT(std::string(session->ChangeOptimizer(wrong).message()), HasSubstr("ExponentialMovingAverage"));
  const absl::Status none = session->ChangeBatchSize(0);
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("input.batch_size is 0"));
  EXPECT_EQ(Record().change_size(), 0);
  RunToTheEnd(session.get());
}

TEST_F(SessionSettingsTest, RefusesAndForgetsAChangeAfterTheEnd) {
  const auto session = OpenChief();
  RunTo(session.get(), 12);
  const absl::Status complete = session->ChangeSettings(Change());
  EXPECT_TRUE(absl::IsOutOfRange(complete)) << complete;
  EXPECT_TRUE(session->Close().ok());
  const absl::Status closed = session->ChangeSettings(Change());
  EXPECT_TRUE(absl::IsOutOfRange(closed)) << closed;
  EXPECT_EQ(Record().change_size(), 0);
  EXPECT_FLOAT_EQ(Record().config().optimizer().learning_rate().initial(), 0.05f);
}

TEST_F(SessionSettingsTest, AStartKeepsTheProgramsChanges) {
  const std::string digest = DigestOfAChangeAtAStart(5, Change());
  logdir_ = "live";
  SessionOptions options = ChiefOptions();
  options.change_settings = true;
  {
    const auto session = OpenChief(options);
    RunTo(session.get(), 5);
    ASSERT_TRUE(session->ChangeSettings(Change()).ok());
    RunTo(session.get(), 8);
    fs_.KillAfter(0);
  }
  fs_.Heal();
  RunToTheEnd(OpenChief(options).get());
  EXPECT_EQ(DigestOf(12), digest);
  EXPECT_EQ(Record().change_size(), 1);
}

TEST_F(SessionSettingsTest, ABatchThatTheDataDoNotHaveIsRefused) {
  op_.spec.mutable_input()->set_last_batch(config::v1::InputConfig::DROP);
  const auto session = OpenChief();
  RunTo(session.get(), 1);
  const absl::Status status = session->ChangeBatchSize(49);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("input.batch_size is 49: the split has 96 examples"));
  EXPECT_EQ(Record().change_size(), 0);
  EXPECT_TRUE(session->ChangeBatchSize(48).ok());
  RunToTheEnd(session.get());
}

TEST_F(SessionSettingsTest, MovingAveragesSurviveAKill) {
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
  // A run that began without moving averages cannot start keeping them.
  Configure("");
  SessionOptions without = ChiefOptions();
  without.change_settings = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSession(without).status()));
}

}  // namespace
}  // namespace lockstep::train
