// The MS-* cases come from the original's monitored sessions; the F-* cases are flaws of the original that are fixed
// here.
#include "lockstep/train/monitored/monitored_session.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/testing/fake_opener.h"
#include "lockstep/train/testing/jumping_clock.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A hook that records its calls, and fails or requests a stop when a test asks it to.
class NotingHook : public Hook {
 public:
  explicit NotingHook(std::string name, std::vector<std::string>* calls) : name_(std::move(name)), calls_(calls) {}

  std::string name() const override { return name_; }
  absl::Status Begin() override { return Note("begin"); }
  absl::Status AfterCreateSession(Session&) override { return Note("created"); }
  absl::Status BeforeRun(RunContext&) override { return Note("before"); }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    if (values.result.global_step == stop_at) context.RequestStop("enough");
    return Note("after");
  }
  absl::Status End(Session&) override { return Note("end"); }

  // Makes the nth call to `call` (such as "before"), counted from 1, fail with `status`.
  void Fail(const std::string& call, int nth, absl::Status status) {
    failing_ = call;
    left_ = nth;
    error_ = std::move(status);
  }
  int64_t stop_at = -1;

 private:
  absl::Status Note(const std::string& call) {
    calls_->push_back(absl::StrCat(name_, " ", call));
    return call == failing_ && --left_ == 0 ? error_ : absl::OkStatus();
  }

  const std::string name_;
  std::vector<std::string>* const calls_;
  std::string failing_;
  int left_ = 0;
  absl::Status error_;
};

class MonitoredSessionTest : public ::testing::Test {
 protected:
  MonitoredSessionTest() {
    options_.session.open = opener_.opener();
    options_.session.clock = &clock_;
    options_.session.logdir = "run";
  }

  void BeWorker() {
    options_.session.is_chief = false;
    options_.session.master = "grpc://127.0.0.1:1";
  }
  // Returns options for a worker's session that computes `count` blocks, each with the result `global_step`, and then
  // fails.
  FakeSession::Options Blocks(int count, int64_t global_step = 1) {
    FakeSession::Options blocks;
    blocks.chief = false;
    StepResult result;
    result.global_step = global_step;
    for (int i = 0; i < count; ++i) blocks.blocks.push_back(result);
    return blocks;
  }
  std::unique_ptr<MonitoredSession> Create() {
    options_.hooks = {&hook_};
    auto session = MonitoredSession::Create(std::move(options_));
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  int64_t StepOfRun(MonitoredSession* session) {
    const auto result = session->Run(op_);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->global_step : -1;
  }
  int Count(const std::string& call) { return static_cast<int>(std::count(calls_.begin(), calls_.end(), call)); }

  JumpingClock clock_;
  FakeOpener opener_;
  TrainOp op_;
  std::vector<std::string> calls_;
  NotingHook hook_{"h", &calls_};
  MonitoredSessionOptions options_;
};

TEST_F(MonitoredSessionTest, CallsHooksInOrderAndClosesOnce) {
  NotingHook first("f", &calls_);
  options_.first_hooks = {&first};
  const auto session = Create();
  EXPECT_EQ(StepOfRun(session.get()), 1);
  EXPECT_TRUE(session->Close().ok());
  EXPECT_THAT(calls_, ElementsAre("f begin", "h begin", "f created", "h created", "f before", "h before", "f after",
                                  "h after", "f end", "h end"));
  EXPECT_TRUE(session->ShouldStop());
  EXPECT_TRUE(absl::IsFailedPrecondition(session->Run(op_).status()));
}

// MS-02
TEST_F(MonitoredSessionTest, StopsWhenAHookAsksForIt) {
  hook_.stop_at = 2;
  const auto session = Create();
  EXPECT_EQ(StepOfRun(session.get()), 1);
  EXPECT_FALSE(session->ShouldStop());
  EXPECT_EQ(StepOfRun(session.get()), 2);
  EXPECT_TRUE(session->ShouldStop());
  EXPECT_TRUE(absl::IsFailedPrecondition(session->Run(op_).status()));
}

// MS-07
TEST_F(MonitoredSessionTest, RepeatsTheRunInOneSessionAfterTheOther) {
  BeWorker();
  for (const int runs : {1, 2, 3}) opener_.Add(Blocks(runs, 10 * runs));
  opener_.set_on_open([&](int index, FakeSession&) {
    // Each session fails after its runs, as if its chief had been restarted. No session follows the last one.
    if (index == 2) opener_.AddFailure(absl::InternalError("no more sessions"));
  });
  auto session = Create();
  std::vector<int64_t> steps;
  for (int run = 0; run < 6; ++run) {
    if (run == 1) opener_.session(0).FailNextRun(absl::AbortedError("restarted"));
    if (run == 3) opener_.session(1).FailNextRun(absl::UnavailableError("gone"));
    steps.push_back(StepOfRun(session.get()));
  }
  EXPECT_THAT(steps, ElementsAre(10, 20, 20, 30, 30, 30));
  opener_.session(2).FailNextRun(absl::AbortedError("restarted"));
  EXPECT_EQ(session->Run(op_).status(), absl::InternalError("no more sessions"));
  EXPECT_TRUE(session->ShouldStop());
  EXPECT_EQ(Count("h begin"), 1);
  EXPECT_EQ(Count("h created"), 3);
  EXPECT_EQ(session->Close(), absl::InternalError("no more sessions"));
}

TEST_F(MonitoredSessionTest, ListensAfterARecoveryWhereItDidBefore) {
  options_.session.listen = "127.0.0.1:0";
  auto session = Create();
  opener_.session(0).FailNextRun(absl::UnavailableError("gone"));
  ASSERT_TRUE(session->Run(op_).ok());
  ASSERT_EQ(opener_.attempts(), 2);
  EXPECT_EQ(opener_.asked(0).listen, "127.0.0.1:0");
  EXPECT_EQ(opener_.asked(1).listen, "127.0.0.1:4321");
}

// MS-08, MS-09: without a logdir, the run starts over.
TEST_F(MonitoredSessionTest, StartsOverWithoutCheckpoints) {
  options_.session.logdir.clear();
  hook_.Fail("before", 4, absl::AbortedError("restarted"));
  const auto session = Create();
  for (int64_t step = 1; step <= 3; ++step) EXPECT_EQ(StepOfRun(session.get()), step);
  EXPECT_EQ(StepOfRun(session.get()), 1);
  EXPECT_EQ(StepOfRun(session.get()), 2);
  EXPECT_EQ(opener_.opened(), 2);
  EXPECT_EQ(opener_.live(), 1);
}

// MS-10
TEST_F(MonitoredSessionTest, ContinuesFromTheLastStepThatIsSaved) {
  hook_.Fail("before", 4, absl::UnavailableError("gone"));
  const auto session = Create();
  for (int64_t step = 1; step <= 5; ++step) EXPECT_EQ(StepOfRun(session.get()), step);
  EXPECT_EQ(opener_.opened(), 2);
  EXPECT_EQ(Count("h created"), 2);
  EXPECT_EQ(Count("h end"), 0);
  EXPECT_THAT(opener_.session(0).acts(), IsEmpty()) << "the run was not ended";
}

// MS-12
TEST_F(MonitoredSessionTest, TriesAgainWhenAFirstSessionIsAborted) {
  opener_.AddFailure(absl::AbortedError("init_fn met a restart"));
  const auto session = Create();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(StepOfRun(session.get()), 1);
  EXPECT_EQ(Count("h begin"), 1);
  EXPECT_EQ(Count("h created"), 1);
}

// F-8
TEST_F(MonitoredSessionTest, GivesUpAfterSoManySessionsAndWaitsBeforeEach) {
  for (int i = 0; i < 20; ++i) opener_.AddFailure(absl::UnavailableError("nobody listens"));
  options_.recovery.max_attempts = 5;
  const absl::Status status = MonitoredSession::Create(std::move(options_)).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("given up after 5 further sessions"));
  EXPECT_EQ(opener_.attempts(), 6);
  EXPECT_GT(clock_.elapsed(), absl::Seconds(1));
  EXPECT_LT(clock_.elapsed(), absl::Seconds(5));
}

// MS-14
TEST_F(MonitoredSessionTest, EndsWellWithOutOfRange) {
  BeWorker();
  opener_.Add(Blocks(2));
  EXPECT_TRUE(WithSession(Create(), [&](MonitoredSession& session) -> absl::Status {
                while (true) RETURN_IF_ERROR(session.Run(op_).status());
              }).ok());
  EXPECT_EQ(Count("h after"), 2);
  EXPECT_EQ(Count("h end"), 1);
  EXPECT_THAT(opener_.last().acts(), ElementsAre("close"));
  EXPECT_TRUE(WithSession(absl::OutOfRangeError("the run is over"), [](MonitoredSession&) {
                return absl::InternalError("called");
              }).ok());
}

// MS-15
TEST_F(MonitoredSessionTest, PassesOnTheErrorOfAHook) {
  hook_.Fail("before", 4, absl::UnknownError("oh"));
  const auto session = Create();
  for (int i = 0; i < 3; ++i) StepOfRun(session.get());
  const absl::Status status = session->Run(op_).status();
  EXPECT_TRUE(absl::IsUnknown(status));
  EXPECT_THAT(status.message(), HasSubstr("hook h: oh"));
  EXPECT_TRUE(session->ShouldStop());
  EXPECT_TRUE(opener_.last().stopped());
  EXPECT_THAT(opener_.last().acts(), IsEmpty()) << "the run is not ended";
}

TEST_F(MonitoredSessionTest, StopsTheSessionAfterAnErrorOfTheLoop) {
  EXPECT_TRUE(absl::IsDataLoss(WithSession(Create(), [](MonitoredSession&) { return absl::DataLossError("x"); })));
  EXPECT_EQ(Count("h end"), 0);
  EXPECT_THAT(opener_.last().acts(), IsEmpty());
  EXPECT_EQ(opener_.live(), 0);
}

// MS-17
TEST_F(MonitoredSessionTest, FailingThreadStopsTheSession) {
  const auto session = Create();
  EXPECT_TRUE(session->coordinator()->RequestStop(absl::UnknownError("a thread's")).ok());
  EXPECT_EQ(StepOfRun(session.get()), 1);
  EXPECT_TRUE(session->ShouldStop());
  EXPECT_EQ(session->Close(), absl::UnknownError("a thread's"));
  EXPECT_EQ(Count("h end"), 0);
  EXPECT_TRUE(opener_.last().stopped());
  EXPECT_THAT(opener_.last().acts(), IsEmpty()) << "the run is not ended";
}

TEST_F(MonitoredSessionTest, GivesThreadsTheGraceToEnd) {
  options_.stop_grace = absl::Seconds(7);
  absl::Notification released;
  const auto session = Create();
  session->coordinator()->StartThread("deaf", [&] {
    released.WaitForNotification();
    return absl::OkStatus();
  });
  EXPECT_TRUE(session->Close().ok()) << "its thread is in the log";
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(7));
  released.Notify();
}

TEST_F(MonitoredSessionTest, OutOfRangeOfAThreadIsAnError) {
  const absl::Status status = WithSession(Create(), [](MonitoredSession& session) {
    return session.coordinator()->RequestStop(absl::OutOfRangeError("a thread has no more"));
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(opener_.last().stopped());
}

TEST_F(MonitoredSessionTest, ExceptionOfTheLoopStopsTheSession) {
  const absl::Status status =
      WithSession(Create(), [](MonitoredSession&) -> absl::Status { throw std::runtime_error("a bug in the loop"); });
  EXPECT_EQ(status, absl::InternalError("exception: a bug in the loop"));
  EXPECT_EQ(Count("h end"), 0);
  EXPECT_THAT(opener_.last().acts(), IsEmpty());
  EXPECT_EQ(opener_.live(), 0);
}

TEST_F(MonitoredSessionTest, FailingEndStopsTheSession) {
  hook_.Fail("end", 1, absl::DataLossError("oh"));
  EXPECT_EQ(Create()->Close(), absl::DataLossError("hook h: oh"));
  EXPECT_TRUE(opener_.last().stopped());
  EXPECT_THAT(opener_.last().acts(), IsEmpty());
}

// MS-18
TEST_F(MonitoredSessionTest, RecoversFromWhatAThreadHasSeenFirst) {
  BeWorker();
  opener_.Add(Blocks(2));
  opener_.Add(Blocks(1, 42));
  const auto session = Create();
  StepOfRun(session.get());
  StepOfRun(session.get());
  EXPECT_EQ(session
                ->RunStepFn<int64_t>([&](StepContext& context) -> absl::StatusOr<int64_t> {
                  if (opener_.opened() == 1) {
                    session->coordinator()->RequestStop(absl::AbortedError("restarted")).IgnoreError();
                    return absl::CancelledError("stuck");
                  }
                  ASSIGN_OR_RETURN(const StepResult result, context.RunWithHooks(op_));
                  return result.global_step;
                })
                .value(),
            42);
  EXPECT_EQ(opener_.opened(), 2);
  EXPECT_FALSE(session->ShouldStop());
}

TEST_F(MonitoredSessionTest, RecoversBeforeARunFromWhatAThreadHasSeen) {
  const auto session = Create();
  session->coordinator()->RequestStop(absl::UnavailableError("gone")).IgnoreError();
  EXPECT_FALSE(session->ShouldStop());
  EXPECT_EQ(StepOfRun(session.get()), 1);
  EXPECT_EQ(opener_.opened(), 2);
}

TEST_F(MonitoredSessionTest, IsNotEndedByAProcessThatIsToldToStop) {
  StopSignal stop;
  options_.session.stop = &stop;
  BeWorker();
  opener_.Add(Blocks(3));
  const auto session = Create();
  StepOfRun(session.get());
  stop.Request();
  EXPECT_TRUE(absl::IsCancelled(session->Close()));
  EXPECT_EQ(Count("h end"), 0);
}

// Exit code 143 would mean that the last step was saved.
TEST_F(MonitoredSessionTest, AStopInARecoverySaysThatTheLastStepIsNotSaved) {
  StopSignal stop;
  options_.session.stop = &stop;
  const auto session = Create();
  StepOfRun(session.get());
  opener_.last().FailNextRun(absl::UnavailableError("gone"));
  opener_.last().set_on_stop([&] {
    stop.Request();
    return absl::DataLossError("the disk is full");
  });
  EXPECT_EQ(session->Run(op_).status(), absl::DataLossError("the disk is full"));
  EXPECT_EQ(session->Close(), absl::DataLossError("the disk is full"));
}

// MS-20
TEST_F(MonitoredSessionTest, IsClosedOnce) {
  const auto session = Create();
  EXPECT_TRUE(session->Close().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(session->Close()));
  EXPECT_EQ(Count("h end"), 1);
}

// MS-22
TEST_F(MonitoredSessionTest, EndsTheLoopWhenAStepFunctionAsksForIt) {
  int steps = 0;
  EXPECT_TRUE(WithSession(Create(), [&](MonitoredSession& session) -> absl::Status {
                while (!session.ShouldStop()) {
                  RETURN_IF_ERROR(session.RunStep([&](StepContext& context) -> absl::Status {
                    if (++steps == 3) return context.RequestStop();
                    // Without hooks.
                    return context.session().Run(op_).status();
                  }));
                }
                return absl::InternalError("it did not end");
              }).ok());
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(Count("h before"), 0);
  EXPECT_EQ(Count("h end"), 1);
}

// MS-31
TEST_F(MonitoredSessionTest, ReturnsAbortedWhereItDoesNotRecover) {
  BeWorker();
  options_.recover = false;
  const auto session = Create();
  opener_.last().FailNextRun(absl::AbortedError("restarted"));
  EXPECT_EQ(session->Run(op_).status(), absl::AbortedError("restarted"));
  EXPECT_EQ(opener_.opened(), 1);
}

// MS-29
TEST_F(MonitoredSessionTest, SaysThatNoChiefCame) {
  BeWorker();
  opener_.AddFailure(absl::UnavailableError("nobody listens"));
  options_.max_wait = absl::Seconds(2);
  EXPECT_TRUE(absl::IsDeadlineExceeded(MonitoredSession::Create(std::move(options_)).status()));
  EXPECT_EQ(opener_.attempts(), 1);
}

TEST_F(MonitoredSessionTest, MakesTheLocalStateOfEverySession) {
  int made = 0;
  options_.scaffold.local_init = [&](Session&) {
    ++made;
    return absl::OkStatus();
  };
  hook_.Fail("before", 2, absl::AbortedError("restarted"));
  const auto session = Create();
  StepOfRun(session.get());
  StepOfRun(session.get());
  EXPECT_EQ(made, 2);
}

// A manager that counts the sessions that it opens.
class CountingManager : public SessionManager {
 public:
  explicit CountingManager(Options options) : SessionManager(std::move(options)) {}

  absl::StatusOr<HeldSession> PrepareSession(const SessionOptions& options, const PrepareOptions& prepare) override {
    ++chiefs;
    return SessionManager::PrepareSession(options, prepare);
  }
  absl::StatusOr<HeldSession> WaitForSession(const SessionOptions& options, absl::Duration max_wait) override {
    ++workers;
    return SessionManager::WaitForSession(options, max_wait);
  }
  int chiefs = 0;
  int workers = 0;
};

TEST_F(MonitoredSessionTest, OpensSessionsByAGivenManager) {
  CountingManager manager{SessionManager::Options()};
  options_.session_manager = &manager;
  hook_.Fail("before", 2, absl::AbortedError("restarted"));
  const auto session = Create();
  StepOfRun(session.get());
  StepOfRun(session.get());
  EXPECT_EQ(manager.chiefs, 2) << "a recovery opens another";
  options_ = MonitoredSessionOptions();
  options_.session.open = opener_.opener();
  options_.session_manager = &manager;
  BeWorker();
  EXPECT_NE(Create(), nullptr);
  EXPECT_EQ(manager.workers, 1);
  options_ = MonitoredSessionOptions();
  options_.session_manager = &manager;
  options_.scaffold.local_init = [](Session&) { return absl::OkStatus(); };
  const absl::Status status = MonitoredSession::Create(std::move(options_)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("scaffold: has ready, ready_for_local_init or local_init"));
}

TEST_F(MonitoredSessionTest, RefusesWrongOptionsByName) {
  const auto error = [&](const std::function<void(MonitoredSessionOptions*)>& change) {
    MonitoredSessionOptions options;
    change(&options);
    return std::string(MonitoredSession::Create(std::move(options)).status().message());
  };
  EXPECT_THAT(error([](auto* o) { o->stop_grace = absl::Seconds(-1); }), HasSubstr("stop_grace: -1s"));
  EXPECT_THAT(error([](auto* o) { o->max_wait = absl::Seconds(-1); }), HasSubstr("max_wait: -1s"));
  EXPECT_THAT(error([](auto* o) { o->recovery_wait = absl::ZeroDuration(); }), HasSubstr("recovery_wait: 0"));
  EXPECT_THAT(error([](auto* o) { o->hooks = {nullptr}; }), HasSubstr("hooks: "));
  EXPECT_THAT(error([](auto* o) { o->recovery.max_attempts = -1; }), HasSubstr("recovery.max_attempts: -1"));
}

std::vector<std::string> Names(const MonitoredSessionOptions& options) {
  std::vector<std::string> names;
  for (const Hook* hook : options.first_hooks) names.push_back(hook->name());
  for (const auto& hook : options.own_hooks) names.push_back(hook->name());
  for (const Hook* hook : options.hooks) names.push_back(hook->name());
  return names;
}

class MonitoredTrainingTest : public ::testing::Test {
 protected:
  MonitoredTrainingTest() {
    options_.session.logdir = "run";
    options_.hooks = {&user_};
    options_.chief_only_hooks = {&chief_};
  }
  MonitoredSessionOptions Resolve() { return ResolveMonitoredTraining(options_).value(); }
  std::string Error() { return std::string(ResolveMonitoredTraining(options_).status().message()); }

  std::vector<std::string> calls_;
  NotingHook user_{"user", &calls_};
  NotingHook chief_{"chief", &calls_};
  MonitoredTrainingOptions options_;
};

TEST_F(MonitoredTrainingTest, HasTheDefaultHooksInOrderOnTheChief) {
  NotingHook other("other", &calls_);
  options_.hooks = {&other, &user_};
  options_.chief_only_hooks = {&chief_};
  const MonitoredSessionOptions resolved = Resolve();
  EXPECT_THAT(Names(resolved), ElementsAre("chief", "StepCounterHook", "LossSummaryHook", "other", "user"));
  EXPECT_EQ(resolved.session.op.spec.checkpoint().every_seconds(), 600);
  EXPECT_EQ(resolved.session.op.spec.checkpoint().every_steps(), 0);
  EXPECT_EQ(resolved.session.op.spec.summary().every_steps(), 0) << "the hooks write them";
  EXPECT_EQ(resolved.max_wait, absl::Seconds(7200));
}

TEST_F(MonitoredTrainingTest, WaitsAsLongAsItIsTold) {
  options_.stop_grace = absl::Seconds(3);
  options_.max_wait = absl::Seconds(4);
  EXPECT_EQ(Resolve().stop_grace, absl::Seconds(3));
  EXPECT_EQ(Resolve().max_wait, absl::Seconds(4));
}

// MS-28
TEST_F(MonitoredTrainingTest, HasOnlyTheHooksOfTheCallerOnAWorker) {
  options_.session.is_chief = false;
  const MonitoredSessionOptions resolved = Resolve();
  EXPECT_THAT(Names(resolved), ElementsAre("user"));
  EXPECT_EQ(resolved.session.logdir, "run") << "it finds there that the run is over";
}

TEST_F(MonitoredTrainingTest, WritesNothingWithoutALogdir) {
  options_.session.logdir.clear();
  EXPECT_THAT(Names(Resolve()), ElementsAre("chief", "user"));
  options_.session.summary_dir = "events";
  EXPECT_THAT(Names(Resolve()), ElementsAre("chief", "StepCounterHook", "LossSummaryHook", "user"));
}

TEST_F(MonitoredTrainingTest, PassesTheSessionManagerOn) {
  const auto manager = SessionManager::Create({}).value();
  options_.session_manager = manager.get();
  EXPECT_EQ(Resolve().session_manager, manager.get());
}

TEST_F(MonitoredTrainingTest, SavesWithThePeriodsThatAreGiven) {
  options_.save_checkpoint_steps = 100;
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_steps(), 100);
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_seconds(), 0);
  options_.save_checkpoint_secs = absl::Seconds(30);
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_seconds(), 30) << "both";
  options_.save_checkpoint_secs = kNone;
  options_.save_checkpoint_steps = kNone;
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_seconds(), 0);
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_steps(), 0);
}

TEST_F(MonitoredTrainingTest, SavesWithThePeriodsOfTheConfiguration) {
  config::v1::CheckpointConfig* const configured = options_.session.op.spec.mutable_checkpoint();
  configured->set_every_steps(50);
  configured->set_every_seconds(30);
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_steps(), 50);
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_seconds(), 30);
  options_.save_checkpoint_secs = kNone;
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_steps(), 50);
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_seconds(), 0);
  options_.save_checkpoint_secs = {};
  options_.save_checkpoint_steps = 7;
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_steps(), 7);
  EXPECT_EQ(Resolve().session.op.spec.checkpoint().every_seconds(), 0) << "steps are given";
}

TEST_F(MonitoredTrainingTest, SwitchesOffWhatIsNoneOrZero) {
  options_.log_step_count_steps = 0;
  options_.save_summaries_steps = kNone;
  EXPECT_THAT(Names(Resolve()), ElementsAre("chief", "user"));
  options_.save_summaries_steps = {};
  options_.save_summaries_secs = absl::Seconds(5);
  EXPECT_THAT(Names(Resolve()), ElementsAre("chief", "LossSummaryHook", "user"));
  options_.scaffold.summary = SummaryProvider([](Session&, int64_t) { return v1::Summary(); });
  EXPECT_THAT(Names(Resolve()), ElementsAre("chief", "SummarySaverHook", "user"));
  options_.scaffold.summary = kNone;
  EXPECT_THAT(Names(Resolve()), ElementsAre("chief", "user"));
}

TEST_F(MonitoredTrainingTest, ChiefScalarsFollowTheOptions) {
  options_.session.op.spec.mutable_summary()->set_gradients_every_steps(10);
  options_.save_scalars_steps = 20;
  const auto summary_of = [](const MonitoredSessionOptions& resolved) { return resolved.session.op.spec.summary(); };
  EXPECT_EQ(summary_of(Resolve()).every_steps(), 20);
  EXPECT_EQ(summary_of(Resolve()).gradients_every_steps(), 10);
  EXPECT_FALSE(Resolve().session.writes_loss) << "the hooks do";
  options_.save_summaries_steps = kNone;
  EXPECT_EQ(summary_of(Resolve()).gradients_every_steps(), 0);
  options_.save_summaries_steps = {};
  options_.scaffold.summary = kNone;
  EXPECT_EQ(summary_of(Resolve()).gradients_every_steps(), 0);
}

TEST_F(MonitoredTrainingTest, RefusesWrongOptionsByName) {
  options_.save_summaries_steps = 10;
  options_.save_summaries_secs = absl::Seconds(5);
  EXPECT_THAT(Error(), HasSubstr("save_summaries_secs: is given beside save_summaries_steps"));
  options_.save_summaries_secs = kNone;
  options_.save_summaries_steps = -1;
  EXPECT_THAT(Error(), HasSubstr("save_summaries_steps: -1, must be 0 or more"));
  options_.save_summaries_steps = 1;
  options_.save_checkpoint_steps = -1;
  EXPECT_THAT(Error(), HasSubstr("save_checkpoint_steps: -1"));
  options_.save_checkpoint_steps = 1;
  options_.save_checkpoint_secs = absl::Seconds(-1);
  EXPECT_THAT(Error(), HasSubstr("save_checkpoint_secs: -1s"));
  options_.save_checkpoint_secs = kNone;
  options_.save_scalars_steps = -1;
  EXPECT_THAT(Error(), HasSubstr("save_scalars_steps: -1"));
  options_.save_scalars_steps = 0;
  options_.log_step_count_steps = -1;
  EXPECT_THAT(Error(), HasSubstr("log_step_count_steps: -1"));
}

// MS-25: fields of one scaffold replace those that another leaves at their defaults.
TEST(ScaffoldTest, TakesFromAnotherWhatItLeavesToTheDefault) {
  Scaffold base;
  base.local_init = LocalInitFunction([](Session&) { return absl::InternalError("base"); });
  base.ready = kNone;
  base.init_op = [](const v1::ModelSpec&, absl::Span<const NamedTensor>) { return InitialValues(); };
  base.init_feed_dict = {NamedTensor()};
  Scaffold scaffold;
  scaffold.ready = ReadyFunction(UninitializedVariables);
  const Scaffold both = scaffold.Else(base);
  EXPECT_TRUE(both.ready.is_given()) << "what is given counts";
  EXPECT_TRUE(both.local_init.is_given());
  EXPECT_TRUE(both.init_op.is_given());
  EXPECT_EQ(both.init_feed_dict.size(), 1u) << "they go with the init_op";
  scaffold.init_op = kNone;
  EXPECT_TRUE(scaffold.Else(base).init_op.is_none());
  EXPECT_TRUE(scaffold.Else(base).init_feed_dict.empty());
  EXPECT_TRUE(both.summary.is_default());
}

TEST(ScaffoldTest, ChecksReadinessUnlessItIsSwitchedOff) {
  Scaffold scaffold;
  EXPECT_TRUE(scaffold.ManagerOptions().ready);
  EXPECT_FALSE(scaffold.ManagerOptions().ready_for_local_init) << "nothing waits for it";
  scaffold.local_init = LocalInitFunction([](Session&) { return absl::OkStatus(); });
  EXPECT_TRUE(scaffold.ManagerOptions().ready_for_local_init);
  scaffold.ready = kNone;
  scaffold.ready_for_local_init = kNone;
  EXPECT_FALSE(scaffold.ManagerOptions().ready);
  EXPECT_FALSE(scaffold.ManagerOptions().ready_for_local_init);
}

}  // namespace
}  // namespace lockstep::train
