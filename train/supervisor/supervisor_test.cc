// The SUP-* cases come from TensorFlow's Supervisor. The F-* cases are its flaws that are fixed here.
#include "lockstep/train/supervisor/supervisor.h"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/testing/fake_opener.h"
#include "lockstep/train/testing/jumping_clock.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() {
    options_.session.open = opener_.opener();
    options_.session.clock = &clock_;
    options_.session.logdir = "run";
    // Turns off the summary services, which only some tests start.
    options_.save_summaries_period = absl::ZeroDuration();
    options_.recovery.initial_wait = absl::ZeroDuration();
    options_.recovery.max_wait = absl::ZeroDuration();
  }

  std::unique_ptr<Supervisor> Create() {
    auto supervisor = Supervisor::Create(options_);
    EXPECT_TRUE(supervisor.ok()) << supervisor.status();
    return *std::move(supervisor);
  }
  void BeWorker() {
    options_.session.is_chief = false;
    options_.session.master = "grpc://127.0.0.1:1";
  }
  std::string ErrorOfCreate() { return std::string(Supervisor::Create(options_).status().message()); }
  static FakeSession::Options RunOf(int64_t step, int64_t total_steps) {
    FakeSession::Options run;
    run.step = step;
    run.total_steps = total_steps;
    return run;
  }
  // Runs until an error occurs.
  absl::Status RunOn(Session& session) {
    while (true) RETURN_IF_ERROR(session.Run(TrainOp()).status());
  }
  std::vector<std::string> Scalars() {
    std::vector<std::string> scalars;
    for (const auto& scalar : opener_.last().scalars()) {
      scalars.push_back(absl::StrCat(scalar.tag, " ", scalar.step, ": ", scalar.value));
    }
    return scalars;
  }

  SimulatedClock clock_;
  FakeOpener opener_;
  SupervisorOptions options_;
};

TEST_F(SupervisorTest, RefusesWrongOptionsByName) {
  options_.save_model_period = absl::Seconds(-1);
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("save_model_period: -1s, must be 0 or more"));
  options_.save_model_period = absl::ZeroDuration();
  options_.save_summaries_period = absl::Seconds(-2);
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("save_summaries_period: -2s"));
  options_.save_summaries_period = absl::ZeroDuration();
  options_.stop_grace = absl::Seconds(-3);
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("stop_grace: -3s"));
  options_.stop_grace = absl::ZeroDuration();
  options_.recovery_wait = absl::ZeroDuration();
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("recovery_wait: 0"));
  options_.recovery_wait = absl::Seconds(1);
  options_.ready_for_local_init = UninitializedVariables;
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("ready_for_local_init"));
  options_.ready_for_local_init = kNone;
  options_.session.local_workers = -1;
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("local_workers: -1"));
  options_.session.local_workers = 1;
  options_.init_feed_dict = {NamedTensor()};
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("init_feed_dict: is for an init_op, and none is given"));
  options_.init_feed_dict.clear();
  EXPECT_EQ(ErrorOfCreate(), "");
}

TEST_F(SupervisorTest, RunsToTheEndAndCloses) {
  opener_.Add(RunOf(0, 3));
  const auto supervisor = Create();
  int runs = 0;
  EXPECT_TRUE(supervisor
                  ->ManagedSession([&](Session& session) -> absl::Status {
                    while (!supervisor->ShouldStop()) {
                      RETURN_IF_ERROR(session.Run(TrainOp()).status());
                      ++runs;
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(runs, 3);
  EXPECT_TRUE(supervisor->ShouldStop());
  EXPECT_THAT(opener_.last().acts(), ElementsAre("close"));
  EXPECT_EQ(opener_.live(), 0);
}

// SUP-02, SUP-08
TEST_F(SupervisorTest, ReturnsTheErrorOfTheBodyAndStopsTheSession) {
  const auto supervisor = Create();
  int runs = 0;
  const absl::Status status = supervisor->ManagedSession([&](Session& session) -> absl::Status {
    while (++runs < 3) RETURN_IF_ERROR(session.Run(TrainOp()).status());
    return absl::UnknownError("failing here");
  });
  EXPECT_EQ(status, absl::UnknownError("failing here"));
  EXPECT_TRUE(supervisor->ShouldStop());
  EXPECT_THAT(opener_.last().acts(), IsEmpty());
  EXPECT_EQ(opener_.live(), 0);
}

// SUP-03
TEST_F(SupervisorTest, TakesOutOfRangeForACleanEnd) {
  const auto supervisor = Create();
  EXPECT_TRUE(supervisor->ManagedSession([](Session&) { return absl::OutOfRangeError("no more input"); }).ok());
  EXPECT_TRUE(supervisor->ShouldStop());
  EXPECT_THAT(opener_.last().acts(), ElementsAre("close"));
}

// F-18
TEST_F(SupervisorTest, TakesOutOfRangeForACleanEndWhilePreparingToo) {
  BeWorker();
  opener_.AddFailure(absl::OutOfRangeError("the run is over"));
  bool called = false;
  const auto supervisor = Create();
  EXPECT_TRUE(supervisor
                  ->ManagedSession([&](Session&) {
                    called = true;
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_FALSE(called);
  EXPECT_TRUE(supervisor->ShouldStop());
}

TEST_F(SupervisorTest, StopsTheSessionAfterAnException) {
  const auto supervisor = Create();
  EXPECT_EQ(supervisor->ManagedSession([](Session&) -> absl::Status { throw std::runtime_error("a bug"); }),
            absl::InternalError("exception: a bug"));
  EXPECT_TRUE(supervisor->ShouldStop());
  EXPECT_TRUE(opener_.last().stopped());
  EXPECT_EQ(opener_.live(), 0);
}

TEST_F(SupervisorTest, CloseSessionStopsTheSessionAfterAnError) {
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  supervisor->RequestStop(absl::DataLossError("a thread's")).IgnoreError();
  EXPECT_EQ(supervisor->Stop(), absl::DataLossError("a thread's"));
  EXPECT_EQ(supervisor->CloseSession(), absl::DataLossError("a thread's"));
  EXPECT_TRUE(opener_.last().stopped());
  EXPECT_THAT(opener_.last().acts(), IsEmpty()) << "the run is not ended";
}

TEST_F(SupervisorTest, LimitsTheTimeOfLocalInit) {
  options_.local_init_timeout = absl::Seconds(2);
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("local_init_timeout: is given without a local_init"));
  absl::Duration takes = absl::Seconds(2);
  options_.local_init = [&](Session&) {
    clock_.Advance(takes);
    return absl::OkStatus();
  };
  EXPECT_TRUE(Create()->PrepareOrWaitForSession().ok());
  takes = absl::Seconds(3);
  EXPECT_EQ(Create()->PrepareOrWaitForSession().status(),
            absl::DeadlineExceededError("local_init took 3s, at most 2s are allowed"));
  options_.local_init_timeout = absl::ZeroDuration();
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("local_init_timeout: 0, must be more than 0"));
}

// SUP-41
TEST_F(SupervisorTest, OutOfRangeOfLocalInitIsAnError) {
  options_.local_init = [](Session&) { return absl::OutOfRangeError("the table is at its end"); };
  bool called = false;
  const absl::Status status = Create()->ManagedSession([&](Session&) {
    called = true;
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the table is at its end"));
  EXPECT_FALSE(called);
}

// SUP-05
TEST_F(SupervisorTest, ReturnsAbortedWhenAllThreadsHaveEnded) {
  const auto supervisor = Create();
  std::atomic<bool> ended{false};
  const absl::Status status = supervisor->ManagedSession([&](Session&) -> absl::Status {
    supervisor->coordinator()->StartThread("input", [&] {
      supervisor->WaitForStop();
      ended = true;
      return absl::OkStatus();
    });
    return absl::AbortedError("the chief was restarted");
  });
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_TRUE(ended);
}

// F-22
TEST_F(SupervisorTest, CallsTheBodyAgainAfterALossIfItIsToRecover) {
  BeWorker();
  options_.local_init = [this](Session&) {
    opener_.last().FailNextRun(opener_.opened() < 3 ? absl::UnavailableError("gone") : absl::OutOfRangeError("over"));
    return absl::OkStatus();
  };
  Supervisor::PrepareOptions prepare;
  prepare.recover = true;
  EXPECT_TRUE(Create()->ManagedSession([&](Session& session) { return RunOn(session); }, prepare).ok());
  EXPECT_EQ(opener_.opened(), 3);
  EXPECT_EQ(opener_.live(), 0);
}

TEST_F(SupervisorTest, GivesUpAfterAsManySessionsAsItIsTold) {
  BeWorker();
  options_.recovery.max_attempts = 4;
  Supervisor::PrepareOptions prepare;
  prepare.recover = true;
  const absl::Status status = Create()->ManagedSession([](Session&) { return absl::AbortedError("gone"); }, prepare);
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(status.message(), HasSubstr("given up after 4 further sessions"));
  EXPECT_EQ(opener_.opened(), 5);
}

// SUP-07
TEST_F(SupervisorTest, LeavesTheLoopAtTheInputsEnd) {
  const auto supervisor = Create();
  EXPECT_TRUE(supervisor
                  ->ManagedSession([&](Session&) {
                    supervisor->coordinator()->StartThread("input",
                                                           [] { return absl::OutOfRangeError("3 epochs were read"); });
                    supervisor->WaitForStop();
                    return absl::OkStatus();
                  })
                  .ok());
}

// F-17
TEST_F(SupervisorTest, ReturnsAnErrorThatComesAfterACleanStop) {
  const auto supervisor = Create();
  EXPECT_EQ(supervisor->ManagedSession([&](Session&) {
    supervisor->RequestStop().IgnoreError();
    EXPECT_TRUE(supervisor->ShouldStop());
    return absl::DataLossError("a late error");
  }),
            absl::DataLossError("a late error"));
}

// SUP-12
TEST_F(SupervisorTest, RefusesASummaryWithoutALogdir) {
  options_.session.logdir.clear();
  const auto supervisor = Create();
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor->SummaryComputed(v1::Summary())));
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  const absl::Status status = supervisor->SummaryComputed(v1::Summary());
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), HasSubstr("no summary writer"));
}

// SUP-13
TEST_F(SupervisorTest, SavesWithoutEventsWhereTheyAreSwitchedOff) {
  options_.session.write_events = false;
  options_.save_summaries_period = absl::Seconds(1);
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  EXPECT_FALSE(opener_.asked(0).write_events);
  EXPECT_EQ(opener_.asked(0).op.spec.checkpoint().every_seconds(), 600);
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor->SummaryComputed(v1::Summary())));
  EXPECT_TRUE(supervisor->Stop().ok());
  EXPECT_THAT(opener_.last().scalars(), IsEmpty());
}

TEST_F(SupervisorTest, AWriterOfTheProgramTakesTheSummaries) {
  Mutex mutex;
  std::vector<std::string> written;
  options_.summary_writer = [&](const v1::Summary& summary, int64_t step) {
    MutexLock lock(&mutex);
    written.push_back(absl::StrCat(summary.value(0).tag(), " ", step));
    return absl::OkStatus();
  };
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  EXPECT_FALSE(opener_.asked(0).write_events);
  v1::Summary summary;
  summary.add_value()->set_tag("mine");
  EXPECT_TRUE(supervisor->SummaryComputed(summary, 7).ok());
  EXPECT_TRUE(supervisor->summary_writer()(summary, 8).ok());
  EXPECT_TRUE(supervisor->Stop().ok());
  MutexLock lock(&mutex);
  EXPECT_THAT(written, ElementsAre("mine 7", "mine 8"));
}

TEST_F(SupervisorTest, HasAWriterWhereEventsAreWritten) {
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  v1::Summary summary;
  summary.add_value()->set_tag("mine");
  EXPECT_TRUE(supervisor->summary_writer()(summary, 8).ok());
  EXPECT_THAT(Scalars(), ElementsAre("mine 8: 0"));
  EXPECT_TRUE(supervisor->Stop().ok());
  options_.summary_writer = kNone;
  const auto without = Create();
  ASSERT_TRUE(without->PrepareOrWaitForSession().ok());
  EXPECT_FALSE(opener_.asked(1).write_events);
  EXPECT_TRUE(without->summary_writer() == nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(without->SummaryComputed(summary, 1)));
  EXPECT_TRUE(without->Stop().ok());
}

TEST_F(SupervisorTest, RefusesToKeepTheEventFileOpen) {
  Supervisor::PrepareOptions prepare;
  prepare.close_summary_writer = false;
  const absl::Status status = Create()->ManagedSession([](Session&) { return absl::OkStatus(); }, prepare);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("close_summary_writer: cannot be false"));
  EXPECT_EQ(opener_.attempts(), 0);
  // With its own writer, the program may keep the writer open.
  options_.summary_writer = [](const v1::Summary&, int64_t) { return absl::OkStatus(); };
  EXPECT_TRUE(Create()->ManagedSession([](Session&) { return absl::OkStatus(); }, prepare).ok());
}

TEST_F(SupervisorTest, ChiefScalarsFollowTheOptions) {
  options_.session.op.spec.mutable_summary()->set_gradients_every_steps(10);
  options_.save_scalars_steps = 20;
  options_.save_summaries_period = absl::Seconds(1);
  ASSERT_TRUE(Create()->PrepareOrWaitForSession().ok());
  EXPECT_EQ(opener_.asked(0).op.spec.summary().every_steps(), 20);
  EXPECT_EQ(opener_.asked(0).op.spec.summary().gradients_every_steps(), 10);
  EXPECT_FALSE(opener_.asked(0).writes_loss) << "the service does";
  options_.save_summaries_period = absl::ZeroDuration();
  ASSERT_TRUE(Create()->PrepareOrWaitForSession().ok());
  EXPECT_EQ(opener_.asked(1).op.spec.summary().gradients_every_steps(), 0);
  options_.save_summaries_period = absl::Seconds(1);
  options_.summary = kNone;
  ASSERT_TRUE(Create()->PrepareOrWaitForSession().ok());
  EXPECT_EQ(opener_.asked(2).op.spec.summary().gradients_every_steps(), 0);
  options_.save_scalars_steps = -1;
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("save_scalars_steps: -1, must be 0 or more"));
}

// SUP-15
TEST_F(SupervisorTest, WorksWithoutALogdir) {
  options_.session.logdir = "mine";
  options_.save_summaries_period = absl::Seconds(1);
  const auto with = Create();
  ASSERT_TRUE(with->PrepareOrWaitForSession().ok());
  ASSERT_EQ(opener_.asked(0).logdir, "mine");
  clock_.AwaitWaiters(2);
  EXPECT_EQ(Scalars().size(), 1) << "the rate";
  EXPECT_TRUE(with->Stop().ok());
  options_.session.logdir.clear();
  const auto supervisor = Create();
  EXPECT_TRUE(supervisor
                  ->ManagedSession([](Session& session) -> absl::Status {
                    for (int i = 0; i < 10; ++i) RETURN_IF_ERROR(session.Run(TrainOp()).status());
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(opener_.asked(1).logdir, "");
  EXPECT_THAT(Scalars(), IsEmpty());
}

// SUP-21, SUP-22
TEST_F(SupervisorTest, MakesTheLocalStateOfEverySessionOnWorkersToo) {
  int made = 0;
  options_.local_init = [&](Session&) {
    ++made;
    return absl::OkStatus();
  };
  auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  EXPECT_EQ(made, 2);
  BeWorker();
  supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  EXPECT_EQ(made, 3);
}

// SUP-19: each process creates its own local state once the variables have values.
TEST_F(SupervisorTest, MakesTheLocalStateFromTheVariables) {
  float local = -1;
  options_.ready_for_local_init = UninitializedVariables;
  options_.local_init = [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const ReadResult read, session.Read({"w"}));
    local = read.values[0].value.flat<float>()[0];
    return absl::OkStatus();
  };
  opener_.Add(RunOf(41, 1000));
  ASSERT_TRUE(Create()->PrepareOrWaitForSession().ok());
  EXPECT_EQ(local, 41) << "of the step at which nothing has begun";
}

// SUP-24
TEST_F(SupervisorTest, NamesLocalStateThatWasNotMade) {
  options_.ready = [](Session&) -> absl::StatusOr<std::vector<std::string>> { return std::vector<std::string>{"w"}; };
  const absl::Status status = Create()->PrepareOrWaitForSession().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), HasSubstr("not initialized: w"));
  options_.ready = kNone;
  EXPECT_TRUE(Create()->PrepareOrWaitForSession().ok());
}

TEST_F(SupervisorTest, SaysWhereCheckpointsGo) {
  options_.session.logdir = "elsewhere";
  const auto supervisor = Create();
  EXPECT_EQ(supervisor->save_path(), "elsewhere/model.ckpt");
  EXPECT_EQ(supervisor->options().session.logdir, "elsewhere");
  EXPECT_NE(supervisor->session_manager(), nullptr);
  options_.session.logdir.clear();
  EXPECT_EQ(Create()->save_path(), "");
}

// SUP-26
TEST_F(SupervisorTest, ReadsTheGlobalStepOfTheSession) {
  opener_.Add(RunOf(287, 287));
  const auto supervisor = Create();
  EXPECT_EQ((*supervisor->PrepareOrWaitForSession())->GlobalStep().value(), 287);
}

// SUP-28, SUP-29
TEST_F(SupervisorTest, WritesRateAndSummaryPeriodically) {
  options_.save_summaries_period = absl::Seconds(10);
  options_.summary = [](Session&) -> absl::StatusOr<v1::Summary> {
    v1::Summary summary;
    auto* value = summary.add_value();
    value->set_tag("v");
    value->set_simple_value(1);
    return summary;
  };
  opener_.Add(RunOf(123, 123));
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  clock_.AwaitWaiters(2);
  EXPECT_THAT(Scalars(), testing::UnorderedElementsAre("global_step/sec 123: 0", "v 123: 1"));
  clock_.Advance(absl::Seconds(10));
  clock_.AwaitWaiters(2);
  EXPECT_EQ(Scalars().size(), 4);
  EXPECT_TRUE(supervisor->Stop().ok());
  EXPECT_EQ(Scalars().size(), 4) << "none at the stop";
  EXPECT_EQ(opener_.asked(0).op.spec.summary().every_steps(), 0) << "the chief does not write them as well";
}

TEST_F(SupervisorTest, WritesTheRateSinceTheLastTime) {
  options_.save_summaries_period = absl::Seconds(10);
  options_.summary = kNone;
  opener_.set_on_open([](int, FakeSession& session) { session.set_polled_steps({100, 100, 150, 170}); });
  const auto supervisor = Create();
  ASSERT_TRUE((*supervisor->PrepareOrWaitForSession())->Run(TrainOp()).ok());
  for (int i = 0; i < 2; ++i) {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(10));
  }
  clock_.AwaitWaiters(1);
  v1::Summary summary;
  summary.add_value()->set_tag("mine");
  EXPECT_TRUE(supervisor->SummaryComputed(summary, 171).ok());
  EXPECT_TRUE(supervisor->Stop().ok());
  EXPECT_THAT(Scalars(),
              ElementsAre("global_step/sec 100: 0", "global_step/sec 150: 5", "global_step/sec 170: 2", "mine 171: 0"));
}

TEST_F(SupervisorTest, WritesTheLossOfTheLastRunByDefault) {
  options_.save_summaries_period = absl::Seconds(10);
  FakeSession::Options run;
  run.loss = [](int64_t step) { return 0.5 * static_cast<double>(step); };
  opener_.Add(run);
  const auto supervisor = Create();
  Session* const session = *supervisor->PrepareOrWaitForSession();
  clock_.AwaitWaiters(2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run(TrainOp()).ok());
  clock_.Advance(absl::Seconds(10));
  clock_.AwaitWaiters(2);
  clock_.Advance(absl::Seconds(10));
  clock_.AwaitWaiters(2);
  EXPECT_TRUE(supervisor->Stop().ok());
  std::vector<std::string> losses;
  for (const auto& scalar : Scalars()) {
    if (scalar.find("loss") == 0) losses.push_back(scalar);
  }
  EXPECT_THAT(losses, ElementsAre("loss 3: 1.5"));
}

// SUP-31
TEST_F(SupervisorTest, LeavesTheTimerOfCheckpointsToTheChief) {
  options_.save_model_period = absl::Seconds(30);
  ASSERT_TRUE(Create()->PrepareOrWaitForSession().ok());
  EXPECT_EQ(opener_.asked(0).op.spec.checkpoint().every_seconds(), 30);
  options_.save_model_period = absl::ZeroDuration();
  ASSERT_TRUE(Create()->PrepareOrWaitForSession().ok());
  EXPECT_TRUE(opener_.asked(1).op.spec.checkpoint().has_every_seconds());
  EXPECT_EQ(opener_.asked(1).op.spec.checkpoint().every_seconds(), 0);
  EXPECT_THAT(opener_.last().saved_steps(), IsEmpty());
  options_.save_model_period = {};
  options_.session.op.spec.mutable_checkpoint()->set_every_seconds(45);
  ASSERT_TRUE(Create()->PrepareOrWaitForSession().ok());
  EXPECT_EQ(opener_.asked(2).op.spec.checkpoint().every_seconds(), 45) << "as configured";
}

// SUP-32. The fixture's summary period is 0, so only the saver's thread waits.
TEST_F(SupervisorTest, ASaverSavesWithThePeriodOfTheModel) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("run").ok());
  SaverOptions saver_options;
  saver_options.fs = &fs;
  saver_options.clock = &clock_;
  const auto runs = Saver::Create(saver_options).value();
  options_.saver = runs.get();
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("saver: basename is \"model.ckpt\""));
  saver_options.basename = saver_options.latest_filename = "mine";
  const auto saver = Saver::Create(saver_options).value();
  options_.saver = saver.get();
  options_.save_model_period = kNone;
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("saver: is given, but save_model_period is 0"));
  options_.save_model_period = absl::Seconds(10);
  opener_.Add(RunOf(5, 5));
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(10));
  clock_.AwaitWaiters(1);
  EXPECT_TRUE(supervisor->Stop().ok());
  EXPECT_EQ(opener_.last().reads(), 2);
  EXPECT_THAT(saver->last_checkpoints(), ElementsAre("run/mine-5"));
  EXPECT_EQ(opener_.asked(0).op.spec.checkpoint().every_seconds(), 10) << "the chief saves, too";
  options_.session.logdir.clear();
  EXPECT_THAT(ErrorOfCreate(), HasSubstr("saver: is given, but there is no logdir"));
}

// An executor that records the names of the threads that it starts.
class NotingExecutor : public Executor {
 public:
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) override {
    names_.push_back(name);
    return Threads()->TryStart(std::move(name), std::move(body), priority);
  }

  std::vector<std::string> names_;
};

TEST_F(SupervisorTest, WritesNoSummariesWithoutAPeriod) {
  NotingExecutor executor;
  options_.executor = &executor;
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  EXPECT_THAT(executor.names(), IsEmpty()) << "a thread might be stopped before it writes anything";
  EXPECT_TRUE(supervisor->Stop().ok());
  EXPECT_THAT(opener_.last().scalars(), IsEmpty());
}

TEST_F(SupervisorTest, StartsTheServicesWhenItIsAsked) {
  Supervisor::PrepareOptions prepare;
  prepare.start_standard_services = false;
  const auto supervisor = Create();
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor->StartStandardServices())) << "no session";
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession(prepare).ok());
  EXPECT_EQ(opener_.asked(0).op.spec.checkpoint().every_seconds(), 0);
  EXPECT_THAT(opener_.last().saved_steps(), IsEmpty());
  ASSERT_TRUE(supervisor->StartStandardServices().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor->StartStandardServices())) << "they run";
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(600));
  clock_.AwaitWaiters(1);
  EXPECT_TRUE(supervisor->Stop().ok());
  EXPECT_EQ(opener_.last().saved_steps().size(), 2);
}

TEST_F(SupervisorTest, HasNoServicesOnAWorker) {
  options_.session.is_chief = false;
  options_.session.master = "grpc://127.0.0.1:1";
  options_.session.logdir = "run";
  options_.save_summaries_period = absl::Seconds(1);
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(supervisor->StartStandardServices()));
  EXPECT_EQ(opener_.asked(0).logdir, "run") << "it finds there that the run is over";
  EXPECT_EQ(supervisor->options().save_summaries_period, absl::ZeroDuration());
  opener_.last().set_polled_steps({-1});
  EXPECT_TRUE(supervisor->SummaryComputed(v1::Summary()).ok()) << "it travels to the chief";
  EXPECT_EQ(opener_.last().GlobalStep().value(), -1) << "the chief was not asked for its step";
}

// SUP-34
TEST_F(SupervisorTest, CallsALoopedFunctionPeriodically) {
  const auto supervisor = Create();
  std::atomic<int> calls{0};
  ASSERT_TRUE(supervisor
                  ->Loop(absl::Milliseconds(100),
                         [&] {
                           ++calls;
                           return absl::OkStatus();
                         })
                  .ok());
  clock_.AwaitWaiters(1);
  EXPECT_EQ(calls, 1);
  for (int i = 0; i < 9; ++i) {
    clock_.Advance(absl::Milliseconds(100));
    clock_.AwaitWaiters(1);
  }
  EXPECT_TRUE(supervisor->Stop().ok());
  EXPECT_EQ(calls, 10);
  EXPECT_THAT(supervisor->Loop(absl::Seconds(-1), [] { return absl::OkStatus(); }).message(), HasSubstr("interval"));
  EXPECT_THAT(supervisor->Loop(absl::Seconds(1), nullptr).message(), HasSubstr("function"));
}

// SUP-36
TEST_F(SupervisorTest, StopsAtTheErrorOfALoopedFunction) {
  const auto supervisor = Create();
  int calls = 0;
  ASSERT_TRUE(supervisor
                  ->Loop(absl::ZeroDuration(),
                         [&] { return ++calls == 3 ? absl::InvalidArgumentError("x") : absl::OkStatus(); })
                  .ok());
  supervisor->WaitForStop();
  EXPECT_TRUE(supervisor->ShouldStop());
  EXPECT_EQ(supervisor->Stop(), absl::InvalidArgumentError("x"));
  EXPECT_EQ(calls, 3);
}

// SUP-37, SUP-38
TEST_F(SupervisorTest, IsReadyForAnotherSessionAfterAStop) {
  for (const bool is_chief : {true, false}) {
    if (!is_chief) BeWorker();
    const auto supervisor = Create();
    EXPECT_TRUE(supervisor->Stop().ok());
    EXPECT_TRUE(supervisor->ShouldStop());
    ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
    EXPECT_FALSE(supervisor->ShouldStop());
    EXPECT_TRUE(supervisor->Stop().ok());
    EXPECT_TRUE(supervisor->ShouldStop());
    EXPECT_TRUE(supervisor->CloseSession().ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(supervisor->CloseSession()));
  }
}

// SUP-42
TEST_F(SupervisorTest, UsesTheGivenSessionManager) {
  const auto manager = SessionManager::Create({}).value();
  options_.session_manager = manager.get();
  options_.ready = [](Session&) -> absl::StatusOr<std::vector<std::string>> { return absl::InternalError("not mine"); };
  options_.local_init = [](Session&) { return absl::InternalError("not mine"); };
  EXPECT_TRUE(Create()->PrepareOrWaitForSession().ok());
}

// A manager that rejects a chief whose logdir has no checkpoint.
class ResumingManager : public SessionManager {
 public:
  explicit ResumingManager(Options options) : SessionManager(std::move(options)) {}

  absl::StatusOr<HeldSession> PrepareSession(const SessionOptions& options, const PrepareOptions& prepare) override {
    ASSIGN_OR_RETURN(Recovered recovered, RecoverSession(options, prepare));
    if (!recovered.session) return absl::NotFoundError("nothing to resume");
    return *std::move(recovered.session);
  }
};

TEST_F(SupervisorTest, OpensSessionsByADerivedManager) {
  ResumingManager manager{SessionManager::Options()};
  options_.session_manager = &manager;
  EXPECT_TRUE(absl::IsNotFound(Create()->PrepareOrWaitForSession().status()));
}

TEST_F(SupervisorTest, ReportsAnErrorForThreadsThatAreNotItsOwn) {
  const auto supervisor = Create();
  EXPECT_TRUE(supervisor->StopOnError([] { return absl::OkStatus(); }).ok());
  EXPECT_FALSE(supervisor->ShouldStop());
  EXPECT_TRUE(absl::IsInternal(supervisor->StopOnError([] { return absl::InternalError("x"); })));
  EXPECT_TRUE(absl::IsInternal(supervisor->Stop()));
}

TEST_F(SupervisorTest, StopJoinsThreadsThatItIsGiven) {
  const auto supervisor = Create();
  std::atomic<int> ended{0};
  std::thread first([&] {
    supervisor->WaitForStop();
    ++ended;
  });
  std::thread second([&] { ++ended; });
  EXPECT_TRUE(supervisor->Stop(/*ignore_live_threads=*/false, {[&] { first.join(); }, [&] { second.join(); }}).ok());
  EXPECT_EQ(ended, 2);
  EXPECT_FALSE(first.joinable() || second.joinable());
}

TEST_F(SupervisorTest, NamesTheGivenThreadThatDoesNotEnd) {
  options_.stop_grace = absl::ZeroDuration();
  Mutex mutex;
  CondVar released;
  bool release = false;
  const auto supervisor = Create();
  const auto deaf = [&] {
    MutexLock lock(&mutex);
    while (!release) released.Wait(&mutex);
  };
  const absl::Status status = supervisor->Stop(/*ignore_live_threads=*/false, {deaf});
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(status.message(), HasSubstr("joined-0"));
  MutexLock lock(&mutex);
  release = true;
  released.SignalAll();
}

TEST_F(SupervisorTest, NamesThreadsThatDoNotEnd) {
  options_.stop_grace = absl::ZeroDuration();
  Mutex mutex;
  CondVar released;
  bool release = false;
  const auto supervisor = Create();
  const auto wait = [&] {
    MutexLock lock(&mutex);
    while (!release) released.Wait(&mutex);
    return absl::OkStatus();
  };
  supervisor->coordinator()->StartThread("deaf", wait);
  const absl::Status status = supervisor->Stop();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(status.message(), HasSubstr("deaf"));
  supervisor->coordinator()->StartThread("another", wait);
  EXPECT_TRUE(supervisor->Stop(/*ignore_live_threads=*/true).ok());
  MutexLock lock(&mutex);
  release = true;
  released.SignalAll();
}

TEST_F(SupervisorTest, WaitsForItsChiefAsLongAsItIsTold) {
  JumpingClock clock;
  options_.session.clock = &clock;
  BeWorker();
  for (int i = 0; i < 9; ++i) opener_.AddFailure(absl::UnavailableError("nobody listens"));
  options_.recovery_wait = absl::Seconds(1);
  Supervisor::PrepareOptions prepare;
  prepare.max_wait = absl::Seconds(3);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Create()->PrepareOrWaitForSession(prepare).status()));
  EXPECT_EQ(clock.elapsed(), absl::Seconds(3));
  EXPECT_EQ(opener_.attempts(), 4);
}

TEST_F(SupervisorTest, ASessionThatFollowsListensWhereTheFirstOneDid) {
  options_.session.listen = "127.0.0.1:0,unix:/tmp/chief";
  const auto supervisor = Create();
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  ASSERT_TRUE(supervisor->PrepareOrWaitForSession().ok());
  EXPECT_EQ(opener_.asked(0).listen, "127.0.0.1:0,unix:/tmp/chief");
  EXPECT_EQ(opener_.asked(1).listen, "127.0.0.1:4321,unix:/tmp/chief");
}

TEST_F(SupervisorTest, SaysHowLongTheProcessMayTakeToStop) {
  StopSignal stop;
  EXPECT_EQ(stop.limit(absl::Seconds(60)), absl::Seconds(60));
  options_.session.stop = &stop;
  options_.session.op.spec.mutable_checkpoint()->set_stop_seconds(30);
  options_.stop_grace = absl::Seconds(2);
  const auto brief = Create();
  EXPECT_EQ(stop.limit(absl::Seconds(60)), absl::Seconds(45)) << "saving takes longer than the threads may";
  options_.stop_grace = absl::Seconds(200);
  const auto patient = Create();
  EXPECT_EQ(stop.limit(absl::Seconds(60)), absl::Seconds(215));
}

TEST_F(SupervisorTest, StopsWhenTheProcessIsToldTo) {
  StopSignal stop;
  options_.session.stop = &stop;
  BeWorker();
  const auto supervisor = Create();
  const absl::Status status = supervisor->ManagedSession([&](Session&) {
    stop.Request();
    EXPECT_TRUE(supervisor->ShouldStop());
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_THAT(opener_.last().acts(), ElementsAre("close"));
}

// Exit code 143 would mean that the last step was saved.
TEST_F(SupervisorTest, AStopInARecoverySaysThatTheLastStepIsNotSaved) {
  Supervisor::PrepareOptions prepare;
  prepare.recover = true;
  for (const absl::Status& saved : {absl::DataLossError("the disk is full"), absl::OkStatus()}) {
    StopSignal stop;
    options_.session.stop = &stop;
    const absl::Status status = Create()->ManagedSession(
        [&](Session&) {
          opener_.last().set_on_stop([&] {
            stop.Request();
            return saved;
          });
          return absl::UnavailableError("gone");
        },
        prepare);
    EXPECT_EQ(status.code(), saved.ok() ? absl::StatusCode::kCancelled : absl::StatusCode::kDataLoss) << status;
  }
}

}  // namespace
}  // namespace lockstep::train
