// Tests sessions of real chiefs and workers in this process.
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/train/session/open_session.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  void Configure(const std::string& training, const std::string& input = "") {
    op_ = CreateTrainOp(absl::StrCat(R"(
      model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
      optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
      input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 )",
                                     input, "} training { replicas_to_aggregate: 2 ", training, "}"))
              .value();
  }
  void SetUp() override { Configure("steps: 12"); }

  SessionOptions ChiefOptions() {
    SessionOptions options;
    options.op = op_;
    options.logdir = logdir_;
    options.fs = &fs_;
    return options;
  }
  std::unique_ptr<ChiefSession> OpenChief(SessionOptions options) {
    auto session = ChiefSession::Open(std::move(options));
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  std::unique_ptr<ChiefSession> OpenChief() { return OpenChief(ChiefOptions()); }
  // Runs until the end. Returns the steps that the session returned.
  std::vector<int64_t> RunAll(Session* session) {
    std::vector<int64_t> steps;
    while (!session->ShouldStop()) {
      const auto result = session->Run(op_);
      if (!result.ok()) {
        EXPECT_TRUE(absl::IsOutOfRange(result.status())) << result.status();
        break;
      }
      steps.push_back(result->global_step);
    }
    return steps;
  }
  std::string DigestOf(int64_t step) {
    const auto reader = BundleReader::Open(&fs_, absl::StrCat(logdir_, "/model.ckpt-", step));
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? CheckpointDigest(**reader).value() : "";
  }
  v1::RunRecord Record() { return ReadRunRecord(&fs_, logdir_).value().value(); }

  TrainOp op_;
  MemoryFileSystem fs_;
  std::string logdir_ = "run";
};

TEST_F(SessionTest, AProcessAloneSeesEveryStepInOrder) {
  auto session = OpenSession(ChiefOptions()).value();
  EXPECT_TRUE(session->is_chief());
  EXPECT_THAT(RunAll(session.get()), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_TRUE(session->ShouldStop());
  EXPECT_TRUE(absl::IsOutOfRange(session->Run(op_).status()));
  EXPECT_TRUE(session->Close().ok());
  EXPECT_NE(DigestOf(12), "");
}

TEST_F(SessionTest, AnErrorBeforeItListensToAStopIsReturned) {
  StopSignal stop;
  SessionOptions options = ChiefOptions();
  options.stop = &stop;
  options.listen = "127.0.0.1:0";
  options.address_file = "no/such/folder/address";
  const absl::Status status = OpenSession(std::move(options)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is in a directory that does not exist"));
}

TEST_F(SessionTest, FailingCheckpointStopsTheRun) {
  Configure("unbounded: true");
  FaultyFileSystem faulty(&fs_);
  faulty.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-3.", absl::ResourceExhaustedError("full"));
  SessionOptions options = ChiefOptions();
  options.fs = &faulty;
  options.op.spec.mutable_checkpoint()->set_every_steps(3);
  const auto session = OpenSession(options).value();
  absl::Status status;
  while (status.ok()) status = session->Run(op_).status();
  faulty.Heal();  // so that the stop can save
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the checkpoint of step 3: "));
  EXPECT_TRUE(session->ShouldStop());
  // A hook that calls the session now must not mistake the failure for a stop of the process.
  EXPECT_EQ(session->Assign({}), status);
  EXPECT_EQ(session->ChangeLearningRate(0.5f), status);
  EXPECT_EQ(session->RequestStop("a hook"), status);
  EXPECT_EQ(session->Close(), status);
  EXPECT_FALSE(Record().finished());
  EXPECT_FALSE(Record().has_end());
}

// The caller of Save decides how to treat its error.
TEST_F(SessionTest, FailingSaveLeavesTheRunAlone) {
  FaultyFileSystem faulty(&fs_);
  SessionOptions options = ChiefOptions();
  options.fs = &faulty;
  const auto session = OpenChief(options);
  session->AllowThrough(2);
  for (int64_t step = 1; step <= 3; ++step) EXPECT_EQ(session->Run(op_)->global_step, step);
  faulty.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-3", absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(session->Save().status()));
  faulty.Heal();
  session->AllowThrough(11);
  EXPECT_THAT(RunAll(session.get()), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_TRUE(session->Close().ok());
}

// SUP-41
TEST_F(SessionTest, FailingInitFunctionStopsTheRun) {
  const auto open = [&](InitFunction init_fn) {
    SessionOptions options = ChiefOptions();
    options.program = "test";
    options.init_fn = std::move(init_fn);
    return OpenSession(options).status();
  };
  EXPECT_EQ(open([](const v1::ModelSpec&) { return absl::DataLossError("the file is cut"); }),
            absl::DataLossError("init_fn: the file is cut"));
  EXPECT_EQ(open([](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> { throw std::out_of_range("stod"); }),
            absl::InternalError("init_fn: exception: stod"));
  const absl::Status ended = open([](const v1::ModelSpec&) { return absl::OutOfRangeError("no more rows"); });
  EXPECT_TRUE(absl::IsFailedPrecondition(ended)) << ended;
}

TEST_F(SessionTest, ALogdirOfAnotherRunIsABadConfiguration) {
  ASSERT_TRUE(OpenChief()->Close().ok());
  Configure("steps: 12 seed: 9");
  const absl::Status status = OpenSession(ChiefOptions()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(ExitCodeOf(status), kExitBadConfiguration);
}

TEST_F(SessionTest, NothingBeginsBeforeItIsAllowed) {
  const auto session = OpenChief();
  EXPECT_EQ(session->GlobalStep().value(), 0);
  session->AllowThrough(2);
  for (int64_t step = 1; step <= 3; ++step) EXPECT_EQ(session->Run(op_)->global_step, step);
  EXPECT_EQ(session->GlobalStep().value(), 3) << "it is held there";
}

TEST_F(SessionTest, AStopEndsTheRunAtTheStepThatIsHeld) {
  {
    const auto session = OpenChief();
    session->AllowThrough(4);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(session->Run(op_).ok());
    ASSERT_TRUE(session->RequestStop("enough").ok());
    EXPECT_TRUE(session->ShouldStop());
    EXPECT_TRUE(session->Close().ok());
    EXPECT_EQ(Record().end().step(), 5);
    EXPECT_EQ(Record().end().reason(), "enough");
  }
  const std::string at_five = DigestOf(5);
  EXPECT_FALSE(fs_.Exists("run/model.ckpt-6.index").value());
  // After a restart, the run reaches the same bits as a run that was never stopped.
  auto session = OpenSession(ChiefOptions()).value();
  EXPECT_THAT(RunAll(session.get()), ElementsAre(6, 7, 8, 9, 10, 11, 12));
  EXPECT_TRUE(session->Close().ok());
  EXPECT_FALSE(Record().has_end());
  const std::string continued = DigestOf(12);
  logdir_ = "whole";
  session.reset();
  session = OpenSession(ChiefOptions()).value();
  RunAll(session.get());
  EXPECT_TRUE(session->Close().ok());
  EXPECT_EQ(DigestOf(12), continued);
}

// Collects the log lines that say how the run ended.
class EndLog : public google::LogSink {
 public:
  EndLog() { google::AddLogSink(this); }
  ~EndLog() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*, const char* message,
            size_t length) override {
    const std::string line(message, length);
    MutexLock lock(&mutex_);
    if (absl::StrContains(line, "finished at step")) lines_.push_back(line);
  }
  std::vector<std::string> lines() {
    MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(SessionTest, TheLogSaysWhyTheRunEnded) {
  EndLog log;
  {
    const auto session = OpenChief();
    session->AllowThrough(4);
    ASSERT_TRUE(session->RequestStop("no improvement in 2 checks").ok());
    EXPECT_TRUE(session->Close().ok());
  }
  const int64_t step = Record().end().step();
  EXPECT_THAT(log.lines(), ElementsAre(absl::StrCat("chief: finished at step ", step, ": no improvement in 2 checks")));
}

TEST_F(SessionTest, AnEndThatIsRecordedStandsInTheNextLife) {
  {
    const auto session = OpenChief();
    session->AllowThrough(4);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run(op_).ok());
    // Imitates a kill after the end was recorded but before it was saved, so the last checkpoint is from an earlier
    // step.
    const auto directory = Record();
    v1::RunRecord record = directory;
    record.mutable_end()->set_step(7);
    record.mutable_end()->set_reason("enough");
    ASSERT_TRUE(WriteRunRecord(&fs_, logdir_, record).ok());
  }
  auto session = OpenSession(ChiefOptions()).value();
  const std::vector<int64_t> steps = RunAll(session.get());
  EXPECT_EQ(steps.back(), 7);
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(SessionTest, AValueThatIsSetIsTrainedOnFromThatStep) {
  std::string digest;
  for (const bool interrupted : {false, true}) {
    logdir_ = interrupted ? "b" : "a";
    {
      const auto session = OpenChief();
      session->AllowThrough(2);
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run(op_).ok());
      const std::vector<float> values = {1, 2, 3};
      ASSERT_TRUE(session->Assign({NamedFloats("logits/bias", {3}, values).value()}).ok());
      const auto read = session->Read({"logits/bias", "global_step"});
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->global_step, 3);
      EXPECT_THAT(read->values[0].value.flat<float>(), ElementsAre(1, 2, 3));
      EXPECT_EQ(read->values[1].value.flat<int64_t>()[0], 3);
      ASSERT_EQ(Record().assignment_size(), 1);
      EXPECT_EQ(Record().assignment(0).step(), 3);
      EXPECT_EQ(Record().assignment(0).variable(0), "logits/bias");
      const std::string held = DigestOf(3);
      EXPECT_NE(held, "") << "the checkpoint is there before any token";
      session->AllowThrough(interrupted ? 4 : StepMachine::kNoLimit);
      if (interrupted) {
        ASSERT_TRUE(session->Run(op_).ok());
      } else {
        EXPECT_THAT(RunAll(session.get()), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 12));
        EXPECT_TRUE(session->Close().ok());
      }
    }
    if (interrupted) {
      auto session = OpenSession(ChiefOptions()).value();
      RunAll(session.get());
      EXPECT_TRUE(session->Close().ok());
      EXPECT_EQ(DigestOf(12), digest) << "a restart computes from the values that were set";
    } else {
      digest = DigestOf(12);
    }
  }
}

TEST_F(SessionTest, UnsavableValuesFailTheRun) {
  FaultyFileSystem faulty(&fs_);
  SessionOptions options = ChiefOptions();
  options.fs = &faulty;
  {
    const auto session = OpenChief(options);
    session->AllowThrough(2);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run(op_).ok());
    faulty.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-3", absl::InternalError("broken"));
    const std::vector<float> values = {1, 2, 3};
    EXPECT_TRUE(absl::IsInternal(session->Assign({NamedFloats("logits/bias", {3}, values).value()})));
    session->AllowThrough(StepMachine::kNoLimit);
    EXPECT_TRUE(absl::IsInternal(session->Run(op_).status())) << "it does not wait for a step that nobody makes";
    EXPECT_TRUE(session->ShouldStop());
    EXPECT_EQ(session->GlobalStep().value(), 3);
  }
  faulty.Heal();
  const auto session = OpenSession(options).value();
  RunAll(session.get());
  EXPECT_TRUE(session->Close().ok());
  EXPECT_EQ(Record().assignment_size(), 0) << "what no checkpoint has is not on record";
}

TEST_F(SessionTest, AWrongValueIsRefusedAndChangesNothing) {
  const auto session = OpenChief();
  session->AllowThrough(0);
  ASSERT_TRUE(session->Run(op_).ok());
  const auto assign = [&](const char* name, std::vector<int64_t> shape, std::vector<float> values) {
    return session->Assign({NamedFloats(name, shape, values).value()});
  };
  EXPECT_THAT(std::string(assign("logits/bias", {2}, {1, 2}).message()), HasSubstr("logits/bias is float32[3]"));
  EXPECT_THAT(std::string(assign("none", {1}, {1}).message()), HasSubstr("no variable or optimizer state none"));
  EXPECT_TRUE(assign("logits/bias/Momentum", {3}, {0, 0, 0}).ok());
  session->AllowThrough(StepMachine::kNoLimit);
  RunAll(session.get());
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(SessionTest, EndOfInputEndsBeforeTheMissingStep) {
  // With 2 slots of 4 examples per step, 96 examples last for 12 steps, and two epochs for 24.
  for (const auto& test : {std::make_pair("epochs: 1", 12), std::make_pair("epochs: 2", 24)}) {
    logdir_ = test.first;
    Configure("unbounded: true", test.first);
    auto session = OpenSession(ChiefOptions()).value();
    EXPECT_EQ(RunAll(session.get()).back(), test.second);
    EXPECT_TRUE(session->Close().ok());
    EXPECT_NE(DigestOf(test.second), "");
  }
}

TEST_F(SessionTest, AdditionalStepsAreCountedOnce) {
  Configure("additional_steps: 5");
  {
    const auto session = OpenChief();
    session->AllowThrough(1);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(session->Run(op_).ok());
  }
  for (const int64_t last : {5, 10}) {
    auto session = OpenSession(ChiefOptions()).value();
    EXPECT_EQ(RunAll(session.get()).back(), last);
    EXPECT_TRUE(session->Close().ok());
  }
}

TEST_F(SessionTest, SettingsChangeFromTheRequestedStep) {
  const auto with_rate = [this](float rate) {
    SessionOptions options = ChiefOptions();
    options.op.spec.mutable_optimizer()->mutable_learning_rate()->set_initial(rate);
    return options;
  };
  std::string digest;
  for (const bool killed : {false, true}) {
    logdir_ = killed ? "killed" : "whole";
    {
      const auto session = OpenChief(with_rate(0.05f));
      session->AllowThrough(4);
      for (int i = 0; i < 5; ++i) ASSERT_TRUE(session->Run(op_).ok());
    }
    const absl::Status refused = OpenSession(with_rate(0.01f)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("--at_step=now"));
    SessionOptions changed = with_rate(0.01f);
    changed.change_settings = true;
    if (killed) {
      const auto session = OpenChief(changed);
      session->AllowThrough(6);
      for (int i = 0; i < 2; ++i) ASSERT_TRUE(session->Run(op_).ok());
    }
    // Requesting the same change again has no effect.
    auto session = OpenSession(changed).value();
    RunAll(session.get());
    ASSERT_TRUE(session->Close().ok());
    ASSERT_EQ(Record().change_size(), 1);
    EXPECT_EQ(Record().change(0).step(), 5);
    EXPECT_FLOAT_EQ(Record().change(0).before().optimizer().learning_rate().initial(), 0.05f);
    if (killed) {
      EXPECT_EQ(DigestOf(12), digest);
    } else {
      digest = DigestOf(12);
    }
  }
  SessionOptions other = ChiefOptions();
  other.op.spec.mutable_training()->set_seed(77);
  other.change_settings = true;
  const absl::Status refused = OpenSession(other).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("training.seed"));
}

TEST_F(SessionTest, OnlyItsOwnProgramResumesARun) {
  SessionOptions options = ChiefOptions();
  options.program = "mine";
  options.init_fn = [](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> {
    const std::vector<float> values = {7, 8, 9};
    return InitialValues{{NamedFloats("logits/bias", {3}, values).value()}, ""};
  };
  {
    const auto session = OpenChief(options);
    EXPECT_THAT(session->Read({"logits/bias"})->values[0].value.flat<float>(), ElementsAre(7, 8, 9));
  }
  const auto other = OpenSession(ChiefOptions());
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status())) << other.status();
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("program mine"));
  {
    const auto session = OpenSession(options).value();
    EXPECT_EQ(RunAll(session.get()).size(), 12u);
    EXPECT_TRUE(session->Close().ok());
  }
  // The run has ended successfully, so the program's name may change.
  Configure("steps: 15");
  const auto session = OpenSession(ChiefOptions()).value();
  EXPECT_THAT(RunAll(session.get()), ElementsAre(13, 14, 15));
  EXPECT_EQ(Record().program(), "");
  ASSERT_EQ(Record().program_change_size(), 1);
  EXPECT_EQ(Record().program_change(0).step(), 12);
}

TEST_F(SessionTest, InitFunctionIsKeptUntilACheckpoint) {
  SessionOptions options = ChiefOptions();
  options.init_fn = [](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> {
    return InitialValues{{NamedFloats("logits/bias", {3}, {7, 8, 9}).value()}, ""};
  };
  OpenChief(options);
  EXPECT_TRUE(Record().initialized_by_program());
  // Imitates a kill before the first checkpoint was written.
  const std::vector<std::string> names = fs_.ListDirectory(logdir_).value();
  for (const std::string& name : names) {
    if (absl::StrContains(name, "checkpoint") || absl::StrContains(name, "model.ckpt")) {
      ASSERT_TRUE(fs_.Remove(JoinPath(logdir_, name)).ok());
    }
  }
  const absl::Status refused = OpenSession(ChiefOptions()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("began with an init_fn; this program has none"));
  ASSERT_TRUE(OpenSession(options).ok());
  EXPECT_TRUE(OpenSession(ChiefOptions()).ok()) << "it would never be called again";
}

TEST_F(SessionTest, AnotherOpIsRefused) {
  const auto session = OpenSession(ChiefOptions()).value();
  TrainOp other = op_;
  other.spec.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(5);
  for (int i = 0; i < 2; ++i) {
    const absl::Status refused = session->Run(other).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("units: 3 -> 5"));
  }
  EXPECT_EQ(session->Run(op_)->global_step, 1);
  EXPECT_EQ(session->Run(TrainOp())->global_step, 2) << "the session's own";
  RunAll(session.get());
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(SessionTest, ExceptionOfTheSummaryWriterLosesASummary) {
  op_.spec.mutable_summary()->set_every_steps(2);
  SessionOptions options = ChiefOptions();
  std::atomic<int> calls{0};
  options.summary_writer = [&](const v1::Summary&, int64_t) -> absl::Status {
    ++calls;
    throw std::runtime_error("a bug in the writer");
  };
  auto session = OpenSession(options).value();
  EXPECT_EQ(RunAll(session.get()).back(), 12);
  EXPECT_TRUE(session->Close().ok());
  session.reset();  // writes its events
  EXPECT_GT(calls, 0);
}

TEST_F(SessionTest, OptionsThatContradictEachOtherAreRefused) {
  const auto error = [this](const std::function<void(SessionOptions*)>& change) {
    SessionOptions options = ChiefOptions();
    change(&options);
    const absl::Status status = OpenSession(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error([](SessionOptions* o) { o->master = "grpc://a:1"; }), HasSubstr("master: "));
  EXPECT_THAT(error([](SessionOptions* o) { o->local_workers = 0; }), HasSubstr("nobody would compute"));
  EXPECT_THAT(error([](SessionOptions* o) { o->local_workers = -1; }), HasSubstr("local_workers: -1"));
  EXPECT_THAT(error([](SessionOptions* o) { o->compute_threads = -1; }), HasSubstr("compute_threads: -1"));
  EXPECT_THAT(error([](SessionOptions* o) { o->is_chief = false; }), HasSubstr("master: is empty"));
  EXPECT_THAT(error([](SessionOptions* o) { o->keep_checkpoint_every = -absl::Hours(1); }),
              HasSubstr("keep_checkpoint_every: -1h"));
  EXPECT_THAT(error([](SessionOptions* o) {
                o->summary_dir = "events";
                o->summary_writer = [](const v1::Summary&, int64_t) { return absl::OkStatus(); };
              }),
              HasSubstr("summary_dir: is events, and summary_writer is given"));
  EXPECT_THAT(error([](SessionOptions* o) {
                o->is_chief = false;
                o->master = "nonsense:x:y";
              }),
              HasSubstr("nonsense"));
}

}  // namespace
}  // namespace lockstep::train
