// Tests the calls that Train makes to each function, their arguments and their order, with sessions in memory.
#include "lockstep/train/slim/learning.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/testing/fake_opener.h"

namespace lockstep::train::slim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Collects the loop's log lines without the timestamps.
class LoopLog : public google::LogSink {
 public:
  LoopLog() { google::AddLogSink(this); }
  ~LoopLog() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char* file, int, const struct ::tm*, const char* message,
            size_t length) override {
    if (!absl::StrContains(file, "learning.cc") && !absl::StrContains(file, "train_step.cc")) return;
    const std::string line(message, length);
    MutexLock lock(&mutex_);
    lines_.push_back(line.substr(0, line.find(" (")));
  }
  std::vector<std::string> lines() {
    MutexLock lock(&mutex_);
    return lines_;
  }
  std::vector<std::string> steps() {
    std::vector<std::string> steps;
    for (const std::string& line : lines()) {
      if (absl::StartsWith(line, "global step")) steps.push_back(line);
    }
    return steps;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

class LearningTest : public ::testing::Test {
 protected:
  LearningTest() {
    op_.spec.mutable_model();
    options_.session.clock = &clock_;
    options_.session.fs = &fs_;
    options_.session.open = opener_.opener();
    options_.save_summaries_secs = absl::ZeroDuration();
    options_.recovery.initial_wait = absl::ZeroDuration();
    options_.recovery.max_wait = absl::ZeroDuration();
  }

  absl::StatusOr<absl::optional<double>> Run(const std::string& logdir = "run") { return Train(op_, logdir, options_); }
  std::string ErrorOf(const std::string& logdir = "run") {
    const auto loss = Run(logdir);
    EXPECT_TRUE(absl::IsInvalidArgument(loss.status())) << loss.status();
    EXPECT_EQ(opener_.attempts(), 0);
    return std::string(loss.status().message());
  }
  static FakeSession::Options RunOf(int64_t step, int64_t total_steps = 1000) {
    FakeSession::Options run;
    run.step = step;
    run.total_steps = total_steps;
    return run;
  }
  static FakeSession::Options Blocks(int count) {
    FakeSession::Options worker;
    worker.chief = false;
    for (int step = 1; step <= count; ++step) {
      StepResult block;
      block.global_step = step;
      block.loss = 1.0 / step;
      worker.blocks.push_back(block);
    }
    return worker;
  }

  TrainOp op_;
  MemoryFileSystem fs_;
  SimulatedClock clock_;
  FakeOpener opener_;
  TrainOptions options_;
};

TEST_F(LearningTest, RefusesATrainOpOfNothing) {
  op_ = TrainOp();
  EXPECT_THAT(ErrorOf(), HasSubstr("train_op: is empty"));
}

// SLIM-02
TEST_F(LearningTest, RefusesASummaryOpWithoutALogdir) {
  options_.summary_op = [](Session&) { return v1::Summary(); };
  EXPECT_THAT(ErrorOf(""), HasSubstr("summary_op: is given, but there is no logdir"));
  options_.summary_op = kNone;
  EXPECT_THAT(ErrorOf(""), HasSubstr("summary_op"));
}

// SLIM-04
TEST_F(LearningTest, RefusesASaverWithoutALogdir) {
  const auto saver = *Saver::Create(SaverOptions());
  options_.saver = saver.get();
  EXPECT_THAT(ErrorOf(""), HasSubstr("saver: is given, but there is no logdir"));
}

TEST_F(LearningTest, RefusesASaverWithNamesOfTheRun) {
  SaverOptions saver_options;
  const auto runs = *Saver::Create(saver_options);
  options_.saver = runs.get();
  EXPECT_THAT(ErrorOf(), HasSubstr("saver: basename is \"model.ckpt\""));
  options_.session.checkpoint_basename = "weights";
  EXPECT_THAT(ErrorOf(), HasSubstr("saver: basename is \"model.ckpt\"")) << "which a Saver never writes";
  saver_options.basename = "mine";
  const auto listed = *Saver::Create(saver_options);
  options_.saver = listed.get();
  EXPECT_THAT(ErrorOf(), HasSubstr("saver: latest_filename is \"checkpoint\""));
}

TEST_F(LearningTest, RefusesTracesWithoutALogdir) {
  options_.trace_every_n_steps = 10;
  EXPECT_THAT(ErrorOf(""), HasSubstr("trace_every_n_steps: is given, but there is no logdir"));
  options_.trace_every_n_steps = 0;
  EXPECT_THAT(ErrorOf(), HasSubstr("trace_every_n_steps: 0, must be more than 0"));
}

// SLIM-06
TEST_F(LearningTest, RefusesAStartupDelayOfASynchronousRun) {
  options_.sync_optimizer = {{2}};
  options_.startup_delay_steps = 1;
  EXPECT_THAT(ErrorOf(), HasSubstr("startup_delay_steps: 1, must be 0 when sync_optimizer is given"));
}

// SLIM-07
TEST_F(LearningTest, RefusesNoSteps) {
  for (const int64_t steps : {0, -3}) {
    options_.number_of_steps = steps;
    EXPECT_THAT(ErrorOf(), HasSubstr(absl::StrCat("number_of_steps: ", steps, ", must be absent or more than 0")));
  }
}

// SLIM-09
TEST_F(LearningTest, RefusesSynchronousOptimizersThatAreNone) {
  options_.sync_optimizer = {{0}};
  EXPECT_THAT(ErrorOf(), HasSubstr("sync_optimizer: replicas_to_aggregate is 0"));
  options_.sync_optimizer = {{2, 0}};
  EXPECT_THAT(ErrorOf(), HasSubstr("sync_optimizer: total_num_replicas is 0"));
  options_.sync_optimizer = {{2}, {3}};
  EXPECT_THAT(ErrorOf(), HasSubstr("one averages 2 gradients and another 3"));
}

TEST_F(LearningTest, RefusesInOrder) {
  options_.startup_delay_steps = 1;
  options_.sync_optimizer = {{0}};
  options_.number_of_steps = 0;
  options_.trace_every_n_steps = 1;
  options_.summary_op = kNone;
  EXPECT_THAT(ErrorOf(""), StartsWith("summary_op"));
  options_.summary_op = {};
  EXPECT_THAT(ErrorOf(""), StartsWith("trace_every_n_steps"));
  EXPECT_THAT(ErrorOf(), StartsWith("startup_delay_steps"));
  options_.startup_delay_steps = 0;
  EXPECT_THAT(ErrorOf(), StartsWith("number_of_steps"));
  options_.number_of_steps = 1;
  EXPECT_THAT(ErrorOf(), StartsWith("sync_optimizer"));
}

TEST_F(LearningTest, RefusesInputsWithoutAnInitOp) {
  options_.init_feed_dict = {*NamedFloats("w", {1}, {1})};
  EXPECT_THAT(ErrorOf(), HasSubstr("init_feed_dict: is for an init_op"));
}

TEST_F(LearningTest, RefusesHalfAStateAndNoHook) {
  options_.train_step_kwargs.emplace().state = [](const TrainStepKwargs&) { return std::string(); };
  EXPECT_THAT(ErrorOf(), HasSubstr("train_step_kwargs: has one of state and set_state"));
  options_.train_step_kwargs.reset();
  options_.hooks = {nullptr};
  EXPECT_THAT(ErrorOf(), HasSubstr("hooks: one of them is null"));
}

// SLIM-11, TS-04
TEST_F(LearningTest, TakesTheStepsAndReturnsTheLastLoss) {
  LoopLog log;
  opener_.Add(RunOf(0, 3));
  options_.number_of_steps = 3;
  const std::string logdir = "mine";
  const auto loss = Run(logdir);
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 1.0 / 3);
  EXPECT_EQ(opener_.asked(0).op.spec.training().steps(), 3);
  EXPECT_EQ(opener_.asked(0).logdir, logdir);
  EXPECT_THAT(log.lines(), ElementsAre("Starting Session.", "global step 1: loss = 1.0000",
                                       "global step 2: loss = 0.5000", "global step 3: loss = 0.3333",
                                       "Stopping Training.", "Finished training! Saving model to disk."));
  EXPECT_THAT(opener_.last().acts(), ElementsAre("close"));
}

// SLIM-15
TEST_F(LearningTest, EndsWellWithTheInput) {
  LoopLog log;
  opener_.Add(RunOf(0, 2));
  const auto loss = Run();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 0.5);
  EXPECT_THAT(log.lines(), Contains(StartsWith("Caught OutOfRangeError. Stopping Training.")));
  EXPECT_EQ(log.lines().back(), "Finished training! Saving model to disk.");
}

TEST_F(LearningTest, ReturnsNoLossWhereNoStepIsTaken) {
  opener_.Add(RunOf(5, 5));
  const auto loss = Run();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, absl::nullopt);
}

// SLIM-25
TEST_F(LearningTest, LogsEveryNSteps) {
  for (const auto& [n, lines] :
       std::vector<std::pair<int64_t, size_t>>{{0, 0}, {-1, 0}, {1, 7}, {2, 3}, {5, 1}, {9, 0}}) {
    LoopLog log;
    opener_.Add(RunOf(0, 7));
    options_.log_every_n_steps = n;
    ASSERT_TRUE(Run().ok());
    EXPECT_EQ(log.steps().size(), lines) << n;
  }
}

// SLIM-12
TEST_F(LearningTest, WithoutALogdirNothingIsSaved) {
  LoopLog log;
  opener_.Add(RunOf(0, 3));
  options_.number_of_steps = 3;
  ASSERT_TRUE(Run("").ok());
  EXPECT_EQ(log.lines().back(), "Stopping Training.");
}

// SLIM-28
TEST_F(LearningTest, CallsTheStepFunctionOfTheProgramUntilItStops) {
  int calls = 0;
  TrainStepKwargs kwargs;
  kwargs.extra["mine"] = std::string("here");
  options_.train_step_kwargs = kwargs;
  options_.number_of_steps = 5;
  options_.train_step_fn = [&](Session& session, const TrainOp& op,
                               TrainStepKwargs& given) -> absl::StatusOr<TrainStepResult> {
    ++calls;
    EXPECT_TRUE(given.summary_writer != nullptr);
    EXPECT_TRUE(given.should_stop == nullptr && given.should_log == nullptr && given.should_trace == nullptr);
    EXPECT_EQ(std::any_cast<std::string>(given.extra.at("mine")), "here");
    const auto step = session.Run(op);
    return TrainStepResult{step->loss, step->global_step == 5};
  };
  const auto loss = Run();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 0.2);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(opener_.last().newest(), 5) << "the run waits for the loop";
  EXPECT_EQ(opener_.asked(0).program, "slim: train_step_fn");
}

TEST_F(LearningTest, TheDefaultDoesNotHoldTheRun) {
  options_.number_of_steps = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_GT(opener_.last().newest(), 2);
  EXPECT_EQ(opener_.asked(0).program, "");
}

// TS-01
TEST_F(LearningTest, ATraceNeedsALogdir) {
  TrainStepKwargs kwargs;
  kwargs.should_trace = [](int64_t) { return true; };
  options_.train_step_kwargs = kwargs;
  const auto loss = Run();
  EXPECT_TRUE(absl::IsInvalidArgument(loss.status()));
  EXPECT_THAT(std::string(loss.status().message()), HasSubstr("logdir: must be present in train_step_kwargs"));
}

// TS-06
TEST_F(LearningTest, AStepWithoutKwargsNeitherLogsNorStops) {
  LoopLog log;
  FakeSession::Options ungated;
  ungated.gated = false;
  FakeSession session(ungated);
  TrainStepKwargs kwargs;
  const auto result = TrainStep(session, op_, kwargs);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->total_loss, 1);
  EXPECT_FALSE(result->should_stop);
  EXPECT_THAT(log.lines(), IsEmpty());
}

// TS-02
TEST_F(LearningTest, TracesTheStepsThatBeginAtMultiples) {
  opener_.Add(RunOf(0, 300));
  options_.number_of_steps = 300;
  options_.trace_every_n_steps = 100;
  ASSERT_TRUE(fs_.CreateDirectory("run").ok());
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(*fs_.ListDirectory("run"),
              ::testing::UnorderedElementsAre("tf_trace-1.json", "tf_trace-101.json", "tf_trace-201.json"));
  // The run waits for the loop before each traced step.
  EXPECT_THAT(opener_.last().calls(), Contains("allow 99"));
  EXPECT_THAT(opener_.last().calls(), Contains("allow 199"));
}

// SLIM-17
TEST_F(LearningTest, AbortedIsFollowedByAnotherSession) {
  LoopLog log;
  int calls = 0;
  options_.number_of_steps = 10;
  opener_.Add(RunOf(0, 10));
  options_.train_step_fn = [&](Session& session, const TrainOp& op,
                               TrainStepKwargs& kwargs) -> absl::StatusOr<TrainStepResult> {
    if (++calls == 4) return absl::AbortedError("a server was restarted");
    return TrainStep(session, op, kwargs);
  };
  const auto loss = Run();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 0.1);
  EXPECT_EQ(opener_.opened(), 2);
  EXPECT_EQ(calls, 11);
  EXPECT_THAT(log.lines(), Contains("Retrying training!"));
  EXPECT_EQ(log.steps().size(), 10u);
}

TEST_F(LearningTest, TheLastLossSurvivesARetry) {
  int calls = 0;
  options_.train_step_fn = [&](Session&, const TrainOp&, TrainStepKwargs&) -> absl::StatusOr<TrainStepResult> {
    if (++calls == 2) return absl::AbortedError("a server was restarted");
    if (calls == 3) return absl::OutOfRangeError("no more input");
    return TrainStepResult{7, false};
  };
  EXPECT_EQ(*Run(), 7);
}

TEST_F(LearningTest, OtherErrorsEndTheTraining) {
  options_.train_step_fn = [&](Session&, const TrainOp&, TrainStepKwargs&) -> absl::StatusOr<TrainStepResult> {
    return absl::InternalError("broken");
  };
  EXPECT_EQ(Run().status(), absl::InternalError("broken"));
  EXPECT_EQ(opener_.opened(), 1);
  EXPECT_THAT(opener_.last().acts(), IsEmpty()) << "the session is stopped";
}

// SLIM-10
TEST_F(LearningTest, WithoutAnInitOpSomethingElseMustInitialize) {
  options_.init_op = kNone;
  const auto loss = Run();
  EXPECT_EQ(loss.status().code(), absl::StatusCode::kFailedPrecondition) << loss.status();
  EXPECT_EQ(opener_.attempts(), 0);
}

// SLIM-20
TEST_F(LearningTest, InitFnComesAfterInitOp) {
  options_.init_feed_dict = {*NamedFloats("zero", {1}, {0})};
  options_.init_op = [](const v1::ModelSpec&, absl::Span<const NamedTensor> feed) -> absl::StatusOr<InitialValues> {
    EXPECT_EQ(feed.size(), 1u);
    return InitialValues{{{"w", feed[0].value}, {"b", feed[0].value}}, "from init_op"};
  };
  options_.init_fn = [](const v1::ModelSpec&) -> absl::StatusOr<InitialValues> {
    return InitialValues{{*NamedFloats("w", {1}, {7})}, "from init_fn"};
  };
  options_.number_of_steps = 1;
  ASSERT_TRUE(Run().ok());
  const auto initial = opener_.asked(0).init_fn(v1::ModelSpec());
  ASSERT_TRUE(initial.ok());
  std::vector<std::string> values;
  for (const NamedTensor& tensor : initial->values) {
    values.push_back(absl::StrCat(tensor.name, " ", tensor.value.flat<float>()[0]));
  }
  EXPECT_THAT(values, ElementsAre("w 7", "b 0"));
  EXPECT_EQ(initial->report, "from init_op\nfrom init_fn");
}

TEST_F(LearningTest, AsksWhetherItIsReady) {
  options_.ready_op = [](Session&) -> absl::StatusOr<std::vector<std::string>> {
    return std::vector<std::string>{"w"};
  };
  EXPECT_EQ(Run().status().code(), absl::StatusCode::kFailedPrecondition);
  options_.ready_op = kNone;
  int made = 0;
  options_.local_init_op = [&](Session&) {
    ++made;
    return absl::OkStatus();
  };
  options_.number_of_steps = 1;
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(made, 1);
}

TEST_F(LearningTest, WrapsTheSession) {
  class Counting : public SessionDecorator {
   public:
    Counting(Session* session, int* runs) : SessionDecorator(session), runs_(runs) {}
    absl::StatusOr<StepResult> Run(const TrainOp& op) override {
      ++*runs_;
      return SessionDecorator::Run(op);
    }

   private:
    int* const runs_;
  };
  int runs = 0;
  options_.number_of_steps = 4;
  options_.session_wrapper = [&](Session* session) { return std::make_unique<Counting>(session, &runs); };
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(runs, 4);
  options_.session_wrapper = [](Session*) { return nullptr; };
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("session_wrapper: has returned null"));
}

TEST_F(LearningTest, AWriterOfTheProgramTakesTheSummaries) {
  std::vector<std::string> written;
  options_.summary_writer = [&](const v1::Summary& summary, int64_t step) {
    written.push_back(absl::StrCat(summary.value(0).tag(), " ", step));
    return absl::OkStatus();
  };
  options_.train_step_fn = [](Session& session, const TrainOp& op,
                              TrainStepKwargs& kwargs) -> absl::StatusOr<TrainStepResult> {
    v1::Summary summary;
    summary.add_value()->set_tag("mine");
    const auto step = session.Run(op);
    EXPECT_TRUE(kwargs.summary_writer(summary, step->global_step).ok());
    EXPECT_TRUE(session.AddSummary(summary).ok());
    return TrainStepResult{step->loss, true};
  };
  for (const char* logdir : {"run", ""}) {
    written.clear();
    ASSERT_TRUE(Run(logdir).ok());
    EXPECT_THAT(written, ElementsAre("mine 1", "mine 1")) << logdir;
    EXPECT_FALSE(opener_.asked(0).write_events);
    EXPECT_THAT(opener_.last().summaries(), IsEmpty());
  }
}

TEST_F(LearningTest, WithoutAWriterNoEventsAreWritten) {
  options_.summary_writer = kNone;
  options_.train_step_fn = [](Session&, const TrainOp&, TrainStepKwargs& kwargs) -> absl::StatusOr<TrainStepResult> {
    EXPECT_TRUE(kwargs.summary_writer == nullptr);
    return TrainStepResult{1, true};
  };
  ASSERT_TRUE(Run().ok());
  EXPECT_FALSE(opener_.asked(0).write_events);
}

TEST_F(LearningTest, ASaverOfTheProgramSavesBesides) {
  SaverOptions saver_options;
  saver_options.basename = "mine";
  saver_options.latest_filename = "mine";
  saver_options.fs = &fs_;
  saver_options.clock = &clock_;
  ASSERT_TRUE(fs_.CreateDirectory("run").ok());
  const auto saver = *Saver::Create(saver_options);
  options_.saver = saver.get();
  options_.save_interval_secs = absl::Seconds(10);
  options_.number_of_steps = 6;
  options_.train_step_fn = [&](Session& session, const TrainOp& op, TrainStepKwargs& kwargs) {
    clock_.Advance(absl::Seconds(4));
    return TrainStep(session, op, kwargs);
  };
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(saver->last_checkpoints(), ElementsAre("run/mine-0", "run/mine-3", "run/mine-5", "run/mine-6"));
  EXPECT_EQ(opener_.asked(0).op.spec.checkpoint().every_seconds(), 10) << "the run's own have the same period";
}

TEST_F(LearningTest, SyncOptimizersCountTheirGradients) {
  options_.sync_optimizer = {{4, 2}, {4, 2}};
  options_.number_of_steps = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(opener_.asked(0).op.spec.training().replicas_to_aggregate(), 4);
  EXPECT_TRUE(opener_.asked(0).op.spec.training().has_deterministic());
}

TrainOp FirstArrivalsOp() {
  return CreateTrainOp(R"(
    model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
    optimizer { sgd {} learning_rate { initial: 0.05 } }
    input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
    training { steps: 10 first_arrivals {} })")
      .value();
}

TEST_F(LearningTest, TheNumberOfReplicasIsThatOfFirstArrivals) {
  op_ = FirstArrivalsOp();
  options_.sync_optimizer = {{4, 6}, {4}};
  EXPECT_THAT(ErrorOf(), HasSubstr("sync_optimizer: has different total_num_replicas"));
  options_.sync_optimizer = {{4, 6}};
  options_.number_of_steps = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(opener_.asked(0).op.spec.training().first_arrivals().total_replicas(), 6);
}

TEST_F(LearningTest, FirstArrivalsFollowTheSyncOptimizer) {
  op_ = FirstArrivalsOp();
  const TrainOp op = op_;
  op_.spec.mutable_training()->mutable_first_arrivals()->set_total_replicas(1);
  op_.spec.mutable_training()->mutable_first_arrivals()->set_initial_tokens(1);
  options_.sync_optimizer = {{4}};
  EXPECT_THAT(ErrorOf(), HasSubstr("initial_tokens is 1, must be in [3, "));
  op_ = op;
  for (const SyncReplicas& sync : {SyncReplicas{4, absl::nullopt}, SyncReplicas{4, 6}}) {
    options_.sync_optimizer = {sync};
    opener_.Add(RunOf(0, 3));
    ASSERT_TRUE(Run().ok());
    const auto& training = opener_.asked(opener_.attempts() - 1).op.spec.training();
    EXPECT_EQ(training.replicas_to_aggregate(), 4);
    EXPECT_EQ(training.first_arrivals().total_replicas(), sync.total_num_replicas.value_or(0)) << "0 stands for 4";
    EXPECT_FALSE(training.first_arrivals().has_initial_tokens());
  }
}

TEST_F(LearningTest, SyncOptimizersChooseAverages) {
  op_.spec.mutable_optimizer()->mutable_sgd();
  SyncReplicas sync;
  sync.variables_to_average = std::vector<std::string>{"logits/bias", "a.b"};
  options_.sync_optimizer = {sync};
  EXPECT_THAT(ErrorOf(), HasSubstr("sync_optimizer: has variables_to_average, but no averages are kept"));
  sync.variable_averages.emplace();
  sync.variable_averages->set_decay(1.5f);
  options_.sync_optimizer = {sync, SyncReplicas()};
  EXPECT_THAT(ErrorOf(), HasSubstr("sync_optimizer: has different variable_averages or variables_to_average"));
  options_.sync_optimizer = {sync};
  EXPECT_THAT(ErrorOf(), HasSubstr("sync_optimizer: optimizer.moving_average.decay is 1.5"));
  sync.variable_averages->set_decay(0.75f);
  SyncReplicas empty = sync;
  empty.variables_to_average->clear();
  options_.sync_optimizer = {empty};
  EXPECT_THAT(ErrorOf(), HasSubstr("sync_optimizer: has an empty variables_to_average"));
  options_.sync_optimizer = {sync, sync};
  opener_.Add(RunOf(0, 3));
  ASSERT_TRUE(Run().ok());
  const auto& average = opener_.asked(opener_.attempts() - 1).op.spec.optimizer().moving_average();
  EXPECT_EQ(average.decay(), 0.75f);
  EXPECT_THAT(average.variables(), ElementsAre("^logits\\/bias$", "^a\\.b$"));
}

TEST_F(LearningTest, TheSessionConfigReplacesClusterFields) {
  op_ = CreateTrainOp(R"(
    model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
    optimizer { sgd {} learning_rate { initial: 0.05 } }
    input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
    training { steps: 10 } cluster { lease_seconds: 9 chief_wait_seconds: 7 })")
            .value();
  options_.session_config.set_lease_seconds(-1);
  EXPECT_THAT(ErrorOf(), HasSubstr("cluster.lease_seconds"));
  options_.session_config.set_lease_seconds(2);
  options_.session_config.set_compute_threads(3);
  ASSERT_TRUE(Run().ok());
  const SessionOptions& asked = opener_.asked(0);
  EXPECT_EQ(asked.compute_threads, 3);
  EXPECT_EQ(asked.op.spec.cluster().lease_seconds(), 2);
  EXPECT_EQ(asked.op.spec.cluster().chief_wait_seconds(), 7);
}

TEST_F(LearningTest, AWorkerTakesBlocksUntilTheStep) {
  LoopLog log;
  options_.session.is_chief = false;
  options_.session.master = "grpc://127.0.0.1:1";
  opener_.Add(Blocks(9));
  options_.number_of_steps = 4;
  options_.startup_delay_steps = 100;
  options_.trace_every_n_steps = 1;
  const auto loss = Run();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 0.25);
  EXPECT_EQ(opener_.asked(0).startup_delay_steps, 4);
  EXPECT_EQ(log.lines().back(), "Stopping Training.") << "a worker saves nothing";
}

// SLIM-24
TEST_F(LearningTest, AWorkerWithoutADelayBeginsAtOnce) {
  options_.session.is_chief = false;
  options_.session.master = "grpc://127.0.0.1:1";
  opener_.Add(Blocks(2));
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(opener_.asked(0).startup_delay_steps, absl::nullopt);
}

TEST_F(LearningTest, TheChiefIsNotDelayed) {
  options_.startup_delay_steps = 3;
  options_.number_of_steps = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(opener_.asked(0).startup_delay_steps, absl::nullopt);
}

// Sets `released` once the log names threads that are still running.
class Release : public google::LogSink {
 public:
  Release() { google::AddLogSink(this); }
  ~Release() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*, const char* message,
            size_t length) override {
    if (absl::StrContains(absl::string_view(message, length), "threads still running")) released = true;
  }
  std::atomic<bool> released{false};
};

TEST_F(LearningTest, ThreadsThatDoNotEndAreIgnored) {
  Release release;
  std::atomic<bool> entered{false};
  options_.save_summaries_secs = absl::Seconds(600);
  options_.stop_grace = absl::ZeroDuration();
  options_.ignore_live_threads = true;
  options_.summary_op = [&](Session&) {
    entered = true;
    while (!release.released) std::this_thread::yield();
    return v1::Summary();
  };
  options_.train_step_fn = [&](Session& session, const TrainOp& op,
                               TrainStepKwargs& kwargs) -> absl::StatusOr<TrainStepResult> {
    while (!entered) std::this_thread::yield();
    ASSIGN_OR_RETURN(TrainStepResult result, TrainStep(session, op, kwargs));
    result.should_stop = true;
    return result;
  };
  const auto loss = Run();
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(*loss, 1);
  EXPECT_TRUE(release.released) << "they were named";
}

TEST_F(LearningTest, RefusesPeriodsBelowZero) {
  options_.save_interval_secs = absl::Seconds(-1);
  EXPECT_THAT(ErrorOf(), HasSubstr("save_model_period: -1s"));
  options_.save_interval_secs = absl::Seconds(1);
  options_.save_summaries_secs = absl::Seconds(-2);
  EXPECT_THAT(ErrorOf(), HasSubstr("save_summaries_period: -2s"));
}

}  // namespace
}  // namespace lockstep::train::slim
