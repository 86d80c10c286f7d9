// Tests Supervisor and MonitoredTrainingSession with real chiefs and workers in this process.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/summary/testing/events_of.h"
#include "lockstep/train/hooks/stop/stop_at_step_hook.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/session/init/init_session.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/supervisor/supervisor.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class SupervisedRunTest : public ::testing::Test {
 protected:
  SupervisedRunTest() { Configure(12); }

  void Configure(int steps) {
    op_ = CreateTrainOp(absl::StrCat(R"(
      model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
      optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } }
      input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
      training { replicas_to_aggregate: 2 steps: )",
                                     steps, "}"))
              .value();
  }
  SessionOptions Chief() {
    SessionOptions options;
    options.op = op_;
    options.logdir = logdir_;
    options.fs = &fs_;
    return options;
  }
  SessionOptions Worker() {
    SessionOptions options;
    options.op = op_;
    options.is_chief = false;
    while (!fs_.Exists("run.port").value()) std::this_thread::yield();
    options.master = absl::StrCat("grpc://127.0.0.1:", std::stoi(ReadFile(&fs_, "run.port").value()));
    return options;
  }
  // Runs under a Supervisor, to the end or for `runs` steps.
  absl::Status Supervise(SupervisorOptions options, int runs = 1 << 30) {
    ASSIGN_OR_RETURN(const auto supervisor, Supervisor::Create(std::move(options)));
    return supervisor->ManagedSession([&](Session& session) -> absl::Status {
      for (int i = 0; i < runs && !supervisor->ShouldStop(); ++i) RETURN_IF_ERROR(session.Run(op_).status());
      return absl::OkStatus();
    });
  }
  absl::Status Monitor(MonitoredTrainingOptions options, int runs = 1 << 30) {
    return WithSession(MonitoredTrainingSession(std::move(options)), [&](MonitoredSession& session) -> absl::Status {
      for (int i = 0; i < runs && !session.ShouldStop(); ++i) RETURN_IF_ERROR(session.Run(op_).status());
      return absl::OkStatus();
    });
  }
  // Runs a body with `gate_loop` that calls Run `runs` times, then waits until the run has taken its last step.
  void WaitAfterRuns(int runs) {
    SupervisorOptions options;
    options.gate_loop = true;
    options.session = Chief();
    const auto supervisor = Supervisor::Create(options).value();
    ASSERT_TRUE(supervisor
                    ->ManagedSession([&](Session& session) -> absl::Status {
                      for (int i = 0; i < runs; ++i) RETURN_IF_ERROR(session.Run(op_).status());
                      supervisor->coordinator()->StartThread("watcher", [&] {
                        while (*session.GlobalStep() < 12) std::this_thread::yield();
                        return supervisor->RequestStop();
                      });
                      supervisor->WaitForStop();
                      return absl::OkStatus();
                    })
                    .ok());
    EXPECT_EQ(DigestOf(12).size(), 64u) << "the last step";
  }
  std::string DigestOf(int64_t step) {
    const auto reader = BundleReader::Open(&fs_, absl::StrCat(logdir_, "/model.ckpt-", step));
    return reader.ok() ? CheckpointDigest(**reader).value() : reader.status().ToString();
  }
  std::vector<float> ValuesOf(const std::string& name, int64_t step) {
    const auto reader = BundleReader::Open(&fs_, absl::StrCat(logdir_, "/model.ckpt-", step));
    if (!reader.ok()) return {};
    const Tensor value = (*reader)->Read(name).value();
    return std::vector<float>(value.flat<float>().begin(), value.flat<float>().end());
  }
  std::vector<std::string> EventFiles() {
    std::vector<std::string> files;
    const std::vector<std::string> names = fs_.ListDirectory(logdir_).value();
    for (const std::string& name : names) {
      if (absl::StrContains(name, "tfevents")) files.push_back(JoinPath(logdir_, name));
    }
    return files;
  }

  TrainOp op_;
  MemoryFileSystem fs_;
  std::string logdir_ = "run";
};

// SUP-29
TEST_F(SupervisedRunTest, ASupervisorTrainsSavesAndWritesItsRecords) {
  SupervisorOptions options;
  options.session = Chief();
  // The run may be over before a service wakes up.
  options.save_summaries_period = absl::ZeroDuration();
  ASSERT_TRUE(Supervise(options).ok());
  EXPECT_EQ(DigestOf(12).size(), 64u) << DigestOf(12);
  ASSERT_EQ(EventFiles().size(), 1u);
  const std::vector<std::string> events = EventsOf(&fs_, EventFiles()[0]);
  EXPECT_EQ(events.front(), "START 0");
  EXPECT_THAT(events, Contains("CHECKPOINT 12"));
  EXPECT_EQ(events.back(), "STOP 0");
}

TEST_F(SupervisedRunTest, ALateSummaryPrecedesTheStop) {
  const auto session = OpenSession(Chief()).value();
  while (session->Run(op_).ok()) {
  }
  // The chief has finished the run once the run's record says so.
  while (!ReadRunRecord(&fs_, logdir_).value()->finished()) std::this_thread::yield();
  v1::Summary summary;
  summary.add_value()->set_tag("mine");
  ASSERT_TRUE(session->AddSummary(summary, 12).ok());
  ASSERT_TRUE(session->Close().ok());
  ASSERT_EQ(EventFiles().size(), 1u);
  const std::vector<std::string> events = EventsOf(&fs_, EventFiles()[0]);
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[events.size() - 2], "mine 12");
  EXPECT_EQ(events.back(), "STOP 0");
}

TEST_F(SupervisedRunTest, AThreadThatHangsDelaysNoSave) {
  Configure(1000000);
  StopSignal stop;
  SupervisorOptions options;
  options.session = Chief();
  options.session.stop = &stop;
  options.save_summaries_period = absl::ZeroDuration();
  options.save_model_period = absl::ZeroDuration();
  options.stop_grace = absl::InfiniteDuration();
  absl::Notification released;
  std::thread program([&] {
    const auto supervisor = Supervisor::Create(std::move(options)).value();
    const absl::Status status = supervisor->ManagedSession([&](Session& session) -> absl::Status {
      supervisor->coordinator()->StartThread("deaf", [&] {
        released.WaitForNotification();
        return absl::OkStatus();
      });
      for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(session.Run(op_).status());
      stop.Request();
      return absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  });
  const auto saved_step = [this] {
    const auto state = GetCheckpointState(logdir_, "checkpoint", &fs_);
    return state.ok() && *state ? (*state)->model_checkpoint_path() : "";
  };
  while (saved_step().empty() || absl::EndsWith(saved_step(), "-0")) std::this_thread::yield();
  released.Notify();
  program.join();
}

// SUP-09
TEST_F(SupervisedRunTest, AStopWhoseStepCannotBeSavedIsNoGoodStop) {
  Configure(1000000);
  FaultyFileSystem faulty(&fs_);
  StopSignal stops[2];
  const auto stop_at_three = [&](StopSignal* stop, auto& session) -> absl::Status {
    for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(session.Run(op_).status());
    faulty.FailMatching(FaultyFileSystem::Operation::kCreate, "model.ckpt-", absl::PermissionDeniedError("read-only"));
    stop->Request();
    while (true) RETURN_IF_ERROR(session.Run(op_).status());
  };
  SupervisorOptions options;
  options.session = Chief();
  options.session.fs = &faulty;
  options.session.stop = &stops[0];
  options.save_model_period = absl::ZeroDuration();
  const auto supervisor = Supervisor::Create(std::move(options)).value();
  absl::Status status = supervisor->ManagedSession([&](Session& session) { return stop_at_three(&stops[0], session); });
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;

  faulty.Heal();
  logdir_ = "monitored";
  MonitoredTrainingOptions monitored;
  monitored.session = Chief();
  monitored.session.fs = &faulty;
  monitored.session.stop = &stops[1];
  status = WithSession(MonitoredTrainingSession(std::move(monitored)),
                       [&](MonitoredSession& session) { return stop_at_three(&stops[1], session); });
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
}

TEST_F(SupervisedRunTest, TwoManagedSessionsContinueOneRun) {
  SupervisorOptions options;
  options.session = Chief();
  options.save_summaries_period = absl::ZeroDuration();
  ASSERT_TRUE(Supervise(options, 5).ok());
  EXPECT_EQ(EventFiles().size(), 1u);
  ASSERT_TRUE(Supervise(options).ok());
  ASSERT_EQ(EventFiles().size(), 2u);
  for (const std::string& file : EventFiles()) {
    const std::vector<std::string> events = EventsOf(&fs_, file);
    EXPECT_THAT(events.front(), testing::StartsWith("START "));
    EXPECT_EQ(events.back(), "STOP 0");
    EXPECT_THAT(events, Not(Contains(testing::StartsWith("global_step/sec")))) << "SUP-32";
  }
  const std::string in_two = DigestOf(12);
  logdir_ = "whole";
  options.session = Chief();
  ASSERT_TRUE(Supervise(options).ok());
  EXPECT_EQ(DigestOf(12), in_two);
}

// SUP-13, SUP-31
TEST_F(SupervisedRunTest, EventsAndCheckpointTimerAreOptional) {
  SupervisorOptions options;
  options.session = Chief();
  options.session.write_events = false;
  options.save_model_period = absl::ZeroDuration();
  ASSERT_TRUE(Supervise(options).ok());
  EXPECT_EQ(EventFiles().size(), 0u);
  EXPECT_EQ(DigestOf(12).size(), 64u);
  EXPECT_FALSE(fs_.Exists("run/model.ckpt-6.index").value());
}

// SUP-16, SM-02, SM-06
TEST_F(SupervisedRunTest, InitRunsUnlessTheRunIsRestored) {
  Configure(1000000);
  SupervisorOptions options;
  options.session = Chief();
  options.session.program = "test";
  const std::vector<float> values = {1, 2, 3};
  options.session.init_fn = AssignFromValues({{"logits/bias", NamedFloats("", {3}, values)->value}});
  // local_init reads the bias before the first step.
  float bias = 0;
  options.local_init = [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const ReadResult read, session.Read({"logits/bias"}));
    bias = read.values[0].value.flat<float>()[0];
    return absl::OkStatus();
  };
  const auto supervisor = Supervisor::Create(options).value();
  // Imitates a failure of the program, which does not end the run.
  int64_t seen = 0;
  EXPECT_TRUE(absl::IsUnknown(supervisor->ManagedSession([&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const StepResult result, session.Run(op_));
    seen = result.global_step;
    return absl::UnknownError("oh");
  })));
  EXPECT_EQ(bias, 1);
  Supervisor::PrepareOptions prepare;
  prepare.wait_for_checkpoint = true;
  EXPECT_TRUE(supervisor
                  ->ManagedSession(
                      [&](Session& session) -> absl::Status {
                        ASSIGN_OR_RETURN(const StepResult result, session.Run(op_));
                        EXPECT_GT(result.global_step, seen);
                        return absl::OkStatus();
                      },
                      prepare)
                  .ok());
  EXPECT_NE(bias, 1) << "restored";
}

TEST_F(SupervisedRunTest, ABodyEndsTheRunAtItsStep) {
  Configure(1000000);
  for (const int life : {1, 2, 3}) {
    SupervisorOptions options;
    options.gate_loop = true;
    options.session = Chief();
    options.session.local_workers = 2;
    const auto supervisor = Supervisor::Create(options).value();
    ASSERT_TRUE(supervisor
                    ->ManagedSession([&](Session& session) -> absl::Status {
                      for (int i = 0; i < 5; ++i) {
                        ASSIGN_OR_RETURN(const StepResult result, session.Run(op_));
                        EXPECT_EQ(*session.GlobalStep(), result.global_step) << "no step begins before the next Run";
                      }
                      return absl::OkStatus();
                    })
                    .ok());
    EXPECT_EQ(DigestOf(5 * life).size(), 64u) << DigestOf(5 * life);
    EXPECT_EQ(LatestCheckpoint(logdir_, "checkpoint", &fs_)->value(), absl::StrCat("run/model.ckpt-", 5 * life));
  }
}

TEST_F(SupervisedRunTest, ABodyThatOnlyWaitsHoldsNoStep) { WaitAfterRuns(0); }

TEST_F(SupervisedRunTest, ABodyMayWaitAfterARun) { WaitAfterRuns(1); }

TEST_F(SupervisedRunTest, ABodyMayLeaveTheStepsToThemselves) {
  SupervisorOptions options;
  options.session = Chief();
  const auto supervisor = Supervisor::Create(options).value();
  ASSERT_TRUE(supervisor
                  ->ManagedSession([&](Session& session) -> absl::Status {
                    while (*session.GlobalStep() < 12) std::this_thread::yield();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(DigestOf(12).size(), 64u) << "the last step";
}

TEST_F(SupervisedRunTest, WithoutASaverNoCheckpointIsAwaited) {
  SupervisorOptions options;
  options.session = Chief();
  options.saver = kNone;
  Supervisor::PrepareOptions prepare;
  prepare.wait_for_checkpoint = true;
  const auto supervisor = Supervisor::Create(options).value();
  const absl::Status status = supervisor->PrepareOrWaitForSession(prepare).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("wait_for_checkpoint"));
}

TEST_F(SupervisedRunTest, WithoutASaverALogdirHasEventsAlone) {
  SupervisorOptions options;
  options.session = Chief();
  options.saver = kNone;
  options.save_summaries_period = absl::ZeroDuration();
  v1::Summary summary;
  summary.add_value()->set_tag("mine");
  for (int life = 0; life < 2; ++life) {
    absl::optional<int64_t> first;
    const auto supervisor = Supervisor::Create(options).value();
    ASSERT_TRUE(supervisor
                    ->ManagedSession([&](Session& session) -> absl::Status {
                      RETURN_IF_ERROR(supervisor->SummaryComputed(summary, 7));
                      while (true) {
                        ASSIGN_OR_RETURN(const StepResult result, session.Run(op_));
                        if (!first) first = result.global_step;
                      }
                    })
                    .ok());
    EXPECT_EQ(first, 1) << "nothing is restored";
  }
  ASSERT_EQ(EventFiles().size(), 2u);
  for (const std::string& file : EventFiles()) {
    const std::vector<std::string> events = EventsOf(&fs_, file);
    EXPECT_THAT(events, ElementsAre("START 0", "mine 7", "STOP 0"));
  }
  EXPECT_EQ(fs_.ListDirectory("run")->size(), 2u) << "no checkpoint, no record";
  options.session.summary_dir = "summaries";
  ASSERT_TRUE(Supervise(options).ok());
  EXPECT_EQ(fs_.ListDirectory("summaries")->size(), 1u);
  EXPECT_EQ(fs_.ListDirectory("run")->size(), 2u) << "as before";
}

TEST_F(SupervisedRunTest, CheckpointsHaveTheBasename) {
  SupervisorOptions options;
  options.session = Chief();
  options.session.checkpoint_basename = "mlp.ckpt";
  ASSERT_TRUE(Supervise(options).ok());
  for (const int step : {0, 12}) EXPECT_TRUE(fs_.Exists(absl::StrCat("run/mlp.ckpt-", step, ".index")).value()) << step;
  EXPECT_FALSE(fs_.Exists("run/model.ckpt-12.index").value());
  EXPECT_EQ(LatestCheckpoint("run", "checkpoint", &fs_).value(), "run/mlp.ckpt-12");
  // The checkpoints belong to the run even without the state file.
  ASSERT_TRUE(fs_.Remove("run/checkpoint").ok());
  int64_t restored = -1;
  options.local_init = [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(restored, session.GlobalStep());
    return absl::OkStatus();
  };
  ASSERT_TRUE(Supervise(options).ok());
  EXPECT_EQ(restored, 12);
  for (const char* wrong : {"", "a/b"}) {
    options.session.checkpoint_basename = wrong;
    const absl::Status status = Supervisor::Create(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_TRUE(absl::StartsWith(status.message(), "checkpoint_basename: is \"")) << status;
  }
}

// SUP-18
TEST_F(SupervisedRunTest, InitOpSetsItsInputsBeforeInitFn) {
  SupervisorOptions options;
  options.session = Chief();
  options.session.program = "test";
  options.init_op = [](const v1::ModelSpec&, absl::Span<const NamedTensor> feed) -> absl::StatusOr<InitialValues> {
    return InitialValues{{{"logits/kernel", feed[0].value}, {"logits/bias", feed[1].value}}, ""};
  };
  options.init_feed_dict = {*NamedFloats("kernel", {4, 3}, std::vector<float>(12, 7)),
                            *NamedFloats("bias", {3}, {1, 2, 3})};
  options.session.init_fn = AssignFromValues({{"logits/bias", NamedFloats("", {3}, {4, 5, 6})->value}});
  ASSERT_TRUE(Supervise(options).ok());
  EXPECT_EQ(ValuesOf("logits/kernel", 0), std::vector<float>(12, 7));
  EXPECT_EQ(ValuesOf("logits/bias", 0), (std::vector<float>{4, 5, 6}));
}

TEST_F(SupervisedRunTest, InitFnAssignsInASession) {
  SupervisorOptions options;
  options.session = Chief();
  options.session.program = "test";
  options.session.init_fn = InitWithSession([](Session& session) -> absl::Status {
    EXPECT_TRUE(session.is_chief());
    EXPECT_EQ(*session.GlobalStep(), 0);
    EXPECT_TRUE(absl::IsFailedPrecondition(session.Run(TrainOp()).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(session.Assign({*NamedFloats("logits/bias", {4}, {1, 2, 3, 4})})));
    EXPECT_TRUE(absl::IsInvalidArgument(session.Assign({*NamedFloats("nobody", {}, {1})})));
    RETURN_IF_ERROR(session.Assign({*NamedFloats("logits/bias", {3}, {1, 1, 1})}));
    return session.Assign({*NamedFloats("logits/bias", {3}, {4, 5, 6})});
  });
  ASSERT_TRUE(Supervise(options).ok());
  EXPECT_EQ(ValuesOf("logits/bias", 0), (std::vector<float>{4, 5, 6}));
  logdir_ = "failed";
  options.session.logdir = logdir_;
  options.session.init_fn = InitWithSession([](Session&) { return absl::DataLossError("no such weights"); });
  EXPECT_TRUE(absl::IsDataLoss(Supervise(options)));
}

TEST_F(SupervisedRunTest, StartsFromTheCheckpointOfAnotherRun) {
  SupervisorOptions options;
  options.session = Chief();
  ASSERT_TRUE(Supervise(options).ok());
  AssignOptions assign;
  assign.fs = &fs_;
  logdir_ = "tuned";
  options.session = Chief();
  options.session.program = "test";
  options.session.init_fn = *AssignFromCheckpoint("run/model.ckpt-12", ByName({"logits/bias"}), assign);
  ASSERT_TRUE(Supervise(options).ok());
  const auto bias_of = [this](const std::string& prefix) {
    return std::string(BundleReader::Open(&fs_, prefix).value()->Read("logits/bias")->bytes());
  };
  EXPECT_EQ(bias_of("tuned/model.ckpt-0"), bias_of("run/model.ckpt-12"));
  EXPECT_NE(bias_of("tuned/model.ckpt-0"), bias_of("run/model.ckpt-0"));
}

TEST_F(SupervisedRunTest, ASupervisedWorkerComputesUntilTheEnd) {
  SupervisorOptions chief;
  chief.session = Chief();
  chief.session.listen = "127.0.0.1:0";
  chief.session.port_file = "run.port";
  chief.session.local_workers = 0;
  absl::Status chief_status;
  std::thread serving([&] { chief_status = Supervise(chief); });
  SupervisorOptions worker;
  worker.session = Worker();
  const absl::Status status = Supervise(worker);
  serving.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(chief_status.ok()) << chief_status;
  EXPECT_EQ(DigestOf(12).size(), 64u);
}

// MS-31
TEST_F(SupervisedRunTest, ASingularSessionHasHooksAndDoesNotRecover) {
  class FailsOnce : public Hook {
   public:
    std::string name() const override { return "FailsOnce"; }
    absl::Status AfterRun(RunContext&, const RunValues&) override {
      return ++runs == 3 ? absl::UnavailableError("a moment's failure") : absl::OkStatus();
    }
    int runs = 0;
  } hook;
  const auto session = SingularMonitoredSession(Chief(), {&hook}).value();
  ASSERT_TRUE(session->Run(op_).ok());
  ASSERT_TRUE(session->Run(op_).ok());
  EXPECT_TRUE(absl::IsUnavailable(session->Run(op_).status()));
  EXPECT_EQ(hook.runs, 3);
}

// MS-26
TEST_F(SupervisedRunTest, AMonitoredTrainingSessionSavesAndContinues) {
  Configure(1000);
  MonitoredTrainingOptions options;
  options.session = Chief();
  options.save_checkpoint_steps = 100;
  options.save_summaries_steps = 10;
  options.log_step_count_steps = 10;
  ASSERT_TRUE(Monitor(options, 100).ok());
  const std::vector<std::string> events = EventsOf(&fs_, EventFiles()[0]);
  EXPECT_THAT(events, Contains("loss 1"));
  EXPECT_THAT(events, Contains("loss 11"));
  EXPECT_THAT(events, Contains("global_step/sec 11"));
  EXPECT_THAT(events, Contains(testing::StartsWith("CHECKPOINT ")));
  int64_t first = 0;
  ASSERT_TRUE(WithSession(MonitoredTrainingSession(options), [&](MonitoredSession& session) -> absl::Status {
                ASSIGN_OR_RETURN(const StepResult result, session.Run(op_));
                first = result.global_step;
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(first, 101) << "what the hooks have not seen comes again, however far the run had gone";
}

TEST_F(SupervisedRunTest, SummariesMayHaveADirectoryOfTheirOwn) {
  MonitoredTrainingOptions options;
  options.session = Chief();
  options.session.local_workers = 2;
  options.session.summary_dir = "summaries";
  options.save_summaries_steps = 5;
  ASSERT_TRUE(Monitor(options).ok());
  EXPECT_THAT(EventFiles(), testing::IsEmpty()) << "the logdir has the checkpoints alone";
  EXPECT_EQ(DigestOf(12).size(), 64u);
  const std::vector<std::string> files = fs_.ListDirectory("summaries").value();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(EventsOf(&fs_, JoinPath("summaries", files[0])), Contains("loss 6"));
  // Without a logdir, there are only summaries.
  options.session.logdir.clear();
  ASSERT_TRUE(Monitor(options).ok());
  EXPECT_EQ(fs_.ListDirectory("summaries")->size(), 2u);
}

TEST_F(SupervisedRunTest, EachStartReachesTheSameWeights) {
  Configure(8);
  std::string digest;
  for (int start = 0; start < 3; ++start) {
    StopAtStepOptions at;
    at.last_step = 8;
    const auto hook = StopAtStepHook::Create(at).value();
    MonitoredTrainingOptions options;
    options.session = Chief();
    options.hooks = {hook.get()};
    ASSERT_TRUE(Monitor(options).ok());
    if (start == 0) digest = DigestOf(8);
    EXPECT_EQ(LatestCheckpoint(logdir_, "checkpoint", &fs_).value(), "run/model.ckpt-8");
    EXPECT_EQ(DigestOf(8), digest);
  }
}

TEST_F(SupervisedRunTest, AMonitoredRunIsRecoveredToTheSameBits) {
  MonitoredTrainingOptions options;
  options.session = Chief();
  ASSERT_TRUE(Monitor(options).ok());
  const std::string undisturbed = DigestOf(12);
  logdir_ = "disturbed";
  options.session = Chief();
  options.gate_loop = true;
  auto session = MonitoredTrainingSession(options).value();
  std::vector<int64_t> steps;
  int failures = 0;
  while (!session->ShouldStop()) {
    const auto step = session->RunStepFn<int64_t>([&](StepContext& context) -> absl::StatusOr<int64_t> {
      if (steps.size() == 4 && failures++ == 0) return absl::UnavailableError("a moment's failure");
      ASSIGN_OR_RETURN(const StepResult result, context.RunWithHooks(op_));
      return result.global_step;
    });
    if (absl::IsOutOfRange(step.status())) break;
    ASSERT_TRUE(step.ok()) << step.status();
    steps.push_back(*step);
  }
  EXPECT_TRUE(session->Close().ok());
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_EQ(DigestOf(12), undisturbed);
}

}  // namespace
}  // namespace lockstep::train
