#include "lockstep/train/learn/experiment.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/stop/stop_at_step_hook.h"
#include "lockstep/train/learn/testing/fake_estimator.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExperimentTest : public ::testing::Test {
 protected:
  ExperimentTest() { Become(""); }
  // Switches to another task of a cluster, with a new estimator.
  void Become(const std::string& tf_config, RunConfigOptions config = {}) {
    estimator_ = std::make_shared<FakeEstimator>(ConfigOf(tf_config, std::move(config)), &clock_);
    options_.estimator = estimator_;
    options_.clock = &clock_;
  }
  std::unique_ptr<Experiment> Make() {
    auto experiment = Experiment::Create(options_);
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    return *std::move(experiment);
  }
  std::string ErrorOf() {
    const auto experiment = Experiment::Create(options_);
    EXPECT_EQ(experiment.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(experiment.status().message());
  }
  int Trainings() const { return static_cast<int>(estimator_->trained.size()); }
  int Evaluations() const { return static_cast<int>(estimator_->evaluated.size()); }
  // Returns a strategy that records its exports.
  ExportStrategy Counted(const std::string& name) {
    ExportStrategy strategy;
    strategy.name = name;
    strategy.export_fn = [this, name](Estimator&, const std::string& directory, const EvaluationMetrics&) {
      exported_.push_back(name);
      return directory;
    };
    return strategy;
  }

  JumpingClock clock_;
  std::shared_ptr<FakeEstimator> estimator_;
  ExperimentOptions options_;
  std::vector<std::string> exported_;
};

// EXP-02
TEST_F(ExperimentTest, TasksBeginToTrainOneAfterTheOther) {
  for (const auto& [task, seconds] : std::vector<std::pair<int, int>>{{0, 0}, {1, 5}, {3, 15}}) {
    Become(TaskOf("worker", task));
    const absl::Duration before = clock_.elapsed();
    EXPECT_TRUE(Make()->Train().ok());
    EXPECT_EQ(clock_.elapsed() - before, absl::Seconds(seconds));
    EXPECT_EQ(Trainings(), 1);
  }
  const absl::Duration before = clock_.elapsed();
  Become("");
  EXPECT_TRUE(Make()->Train().ok());
  EXPECT_EQ(clock_.elapsed() - before, absl::ZeroDuration());
  Become(R"({"cluster": {"chief": ["c:1"], "worker": {"40": "w:1"}}, "task": {"type": "worker", "index": 40}})");
  EXPECT_TRUE(Make()->Train().ok());
  EXPECT_EQ(clock_.elapsed() - before, absl::Minutes(1)) << "at most";
}

// EXP-04
TEST_F(ExperimentTest, TasksBeginByGlobalStep) {
  options_.delay_workers_by_global_step = true;
  for (const auto& [task, step] : std::vector<std::pair<int, int>>{{0, 0}, {1, 5545}, {2, 8788}, {3, 11090}}) {
    Become(TaskOf("worker", task));
    EXPECT_TRUE(Make()->Train().ok());
    EXPECT_EQ(estimator_->trained[0].startup_delay_steps, step);
  }
  EXPECT_EQ(clock_.elapsed(), absl::ZeroDuration());
}

// EXP-06, EXP-07, EXP-08: the chief's session serves if there is a cluster and the master is not empty.
TEST_F(ExperimentTest, AGivenDelayIsWaitedFor) {
  Become(TaskOf("worker", 1));
  EXPECT_TRUE(Make()->Train(absl::Seconds(1)).ok());
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(1));
  EXPECT_THAT(estimator_->calls, ElementsAre("await", "train"));
  Become(TaskOf("chief"));
  EXPECT_TRUE(Make()->Train(absl::Seconds(1)).ok());
  EXPECT_THAT(estimator_->calls, ElementsAre("train"));
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(2));
}

TEST_F(ExperimentTest, AWorkerWhoseRunEndsBeforeItBeginsIsDone) {
  Become(TaskOf("worker", 1));
  estimator_->run_ends = true;
  EXPECT_TRUE(Make()->Train().ok());
  EXPECT_EQ(Trainings(), 0);
}

TEST_F(ExperimentTest, TrainsToItsStepsWithItsHooks) {
  const auto hook = StopAtStepHook::Create({5, absl::nullopt}).value();
  CheckpointEvaluationListener listener([](const std::string&) { return absl::OkStatus(); });
  options_.train_monitors = {hook.get()};
  options_.saving_listeners = {&listener};
  options_.train_steps = 700;
  EXPECT_TRUE(Make()->Train().ok());
  EXPECT_EQ(estimator_->trained[0].max_steps, 700);
  EXPECT_EQ(estimator_->trained[0].steps, absl::nullopt);
  EXPECT_THAT(estimator_->trained[0].hooks, ElementsAre(hook.get()));
  EXPECT_THAT(estimator_->trained[0].saving_listeners, ElementsAre(&listener));
}

// EXP-11
TEST_F(ExperimentTest, EvaluatesOnce) {
  EvaluationHook hook;
  options_.eval_hooks = {&hook};
  options_.eval_delay = absl::ZeroDuration();
  options_.eval_metrics = {"top_2"};
  options_.eval_steps = 25;
  EXPECT_EQ(Make()->Evaluate()->global_step, 100);
  EXPECT_EQ(Trainings(), 0);
  ASSERT_EQ(Evaluations(), 1);
  EXPECT_THAT(estimator_->evaluated[0].hooks, ElementsAre(&hook));
  EXPECT_EQ(estimator_->evaluated[0].name, "one_pass");
  EXPECT_EQ(estimator_->evaluated[0].steps, 25);
  EXPECT_THAT(estimator_->evaluated[0].metrics, ElementsAre("top_2"));
  EXPECT_EQ(clock_.elapsed(), absl::ZeroDuration());
  options_.eval_delay = absl::Seconds(7);
  EXPECT_TRUE(Make()->Evaluate().ok());
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(7));
  EXPECT_TRUE(Make()->Evaluate(absl::Seconds(3), "mine").ok());
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(10));
  EXPECT_EQ(estimator_->evaluated[2].name, "mine");
}

// EXP-13
TEST_F(ExperimentTest, ContinuousEvaluationEndsWithTheFirstError) {
  options_.eval_delay = absl::ZeroDuration();
  options_.continuous_eval_throttle = absl::ZeroDuration();
  estimator_->fails_at = 6;
  ContinuousEvalOptions options;
  options.evaluate_checkpoint_only_once = false;
  EXPECT_TRUE(absl::IsOutOfRange(Make()->ContinuousEval(options)));
  EXPECT_EQ(Evaluations(), 6);
}

// EXP-14
TEST_F(ExperimentTest, ContinuousEvaluationEndsWithTheLastStep) {
  options_.train_steps = 100;
  options_.export_strategies = {MakeExportStrategy("best")};
  EXPECT_TRUE(Make()->ContinuousEval().ok());
  EXPECT_THAT(estimator_->calls, ElementsAre("evaluate continuous", "export /model/export/best/100"));
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(120)) << "the delay of evaluations, and no throttle after the last";
}

TEST_F(ExperimentTest, ContinuousEvaluationStopsAtEarlyEnd) {
  options_.train_steps = 700;
  estimator_->finished = true;
  EXPECT_TRUE(Make()->ContinuousEval().ok());
  EXPECT_EQ(Evaluations(), 1);
}

// EXP-15
TEST_F(ExperimentTest, EvaluationsBeginAThrottleApart) {
  options_.eval_delay = absl::ZeroDuration();
  for (const int seconds : {0, 1, 2}) {
    Become("");
    estimator_->fails_at = 6;
    const absl::Duration before = clock_.elapsed();
    ContinuousEvalOptions options;
    options.evaluate_checkpoint_only_once = false;
    options.throttle = absl::Seconds(seconds);
    EXPECT_FALSE(Make()->ContinuousEval(options).ok());
    EXPECT_EQ(clock_.elapsed() - before, 5 * absl::Seconds(seconds));
  }
}

TEST_F(ExperimentTest, ContinuousEvaluationsHaveTheirOwnDelayAndName) {
  estimator_->fails_at = 3;
  options_.continuous_eval_throttle = absl::Seconds(7);
  ContinuousEvalOptions options;
  options.evaluate_checkpoint_only_once = false;
  options.delay = absl::Seconds(4);
  options.name = "mine";
  EXPECT_FALSE(Make()->ContinuousEval(options).ok());
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(4 + 2 * 7));
  EXPECT_EQ(estimator_->evaluated[0].name, "mine");
}

// EXP-17
TEST_F(ExperimentTest, ThePredicateEndsContinuousEvaluation) {
  ContinuousEvalOptions options;
  options.evaluate_checkpoint_only_once = false;
  options.predicate = [this](const absl::optional<EvaluationMetrics>&) { return Evaluations() < 3; };
  EXPECT_TRUE(Make()->ContinuousEval(options).ok());
  EXPECT_EQ(Evaluations(), 3);
}

TEST_F(ExperimentTest, ThePredicateSeesTheLastResult) {
  options_.train_steps = 100;
  std::vector<std::string> seen;
  ContinuousEvalOptions options;
  options.predicate = [&](const absl::optional<EvaluationMetrics>& result) {
    seen.push_back(result ? result->checkpoint : "none");
    return true;
  };
  EXPECT_TRUE(Make()->ContinuousEval(options).ok());
  EXPECT_THAT(seen, ElementsAre("none", "/model/model.ckpt-100"));
}

// EXP-19
TEST_F(ExperimentTest, ACheckpointIsEvaluatedOnce) {
  int calls = 0, with_result = 0;
  ContinuousEvalOptions options;
  options.predicate = [&](const absl::optional<EvaluationMetrics>& result) {
    with_result += result.has_value();
    return ++calls < 300;
  };
  EXPECT_TRUE(Make()->ContinuousEval(options).ok());
  EXPECT_EQ(Evaluations(), 1);
  EXPECT_EQ(calls, 300);
  EXPECT_EQ(with_result, 1);
}

TEST_F(ExperimentTest, EvaluatesOnTheDataOfTheTrainingWithoutExports) {
  options_.train_steps = 100;
  options_.export_strategies = {Counted("best")};
  EXPECT_TRUE(Make()->ContinuousEvalOnTrainData().ok());
  ASSERT_EQ(Evaluations(), 1);
  EXPECT_EQ(estimator_->evaluated[0].split, "train");
  EXPECT_EQ(estimator_->evaluated[0].name, "continuous_on_train_data");
  EXPECT_THAT(exported_, ElementsAre());
}

// EXP-22
TEST_F(ExperimentTest, TrainsAndEvaluates) {
  options_.train_steps = 100;
  options_.export_strategies = {Counted("best")};
  const auto result = Make()->TrainAndEvaluate();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Trainings(), 1);
  EXPECT_EQ(Evaluations(), 1);
  EXPECT_EQ(estimator_->evaluated[0].name, "");
  EXPECT_THAT(exported_, ElementsAre("best"));
  EXPECT_THAT(result->exports, ElementsAre("/model/export/best"));
  EXPECT_EQ(result->evaluation->global_step, 100);
  ASSERT_EQ(estimator_->trained[0].hooks.size(), 1u);
  EXPECT_EQ(clock_.elapsed(), absl::ZeroDuration());
}

// EXP-24
TEST_F(ExperimentTest, LooksForCheckpointsAtEachStepByDefault) {
  EXPECT_EQ(Make()->options().min_eval_frequency, 1);
  options_.min_eval_frequency = 0;
  EXPECT_TRUE(Make()->TrainAndEvaluate().ok());
  EXPECT_TRUE(estimator_->trained[0].hooks.empty()) << "evaluated at the end alone";
}

TEST_F(ExperimentTest, LooksForCheckpointsOnceInTheInterval) {
  // An estimator that trains twelve steps, each of which takes a second and writes a checkpoint.
  class Stepping : public FakeEstimator {
   public:
    explicit Stepping(JumpingClock* clock) : FakeEstimator(ConfigOf("")), clock_(clock) {}
    absl::Status Train(const TrainArguments& arguments) override {
      HookedRun run(arguments.hooks);
      for (int step = 1; step <= 12; ++step) {
        latest = absl::StrCat("/model/model.ckpt-", step);
        clock_->Advance(absl::Seconds(1));
        RETURN_IF_ERROR(run.Run());
      }
      return absl::OkStatus();
    }

   private:
    JumpingClock* const clock_;
  };
  const auto evaluated = [this] {
    const auto estimator = std::make_shared<Stepping>(&clock_);
    options_.estimator = estimator;
    EXPECT_TRUE(Make()->TrainAndEvaluate().ok());
    std::vector<std::string> checkpoints;
    for (const auto& arguments : estimator->evaluated) {
      if (arguments.checkpoint) checkpoints.push_back(arguments.checkpoint->substr(18));
    }
    return checkpoints;
  };
  options_.min_eval_frequency = 3;
  EXPECT_THAT(evaluated(), ElementsAre("3", "9"));
  options_.check_interval = absl::Seconds(2);
  EXPECT_THAT(evaluated(), ElementsAre("3", "6", "9", "12"));
}

TEST_F(ExperimentTest, CheckpointAndExportAddsAListener) {
  options_.checkpoint_and_export = true;
  EXPECT_TRUE(Make()->TrainAndEvaluate().ok());
  EXPECT_EQ(estimator_->trained[0].saving_listeners.size(), 1u);
  EXPECT_EQ(estimator_->trained[0].hooks.size(), 0u);
  RunConfigOptions no_period;
  no_period.save_checkpoints_secs = kNone;
  Become("", no_period);
  EXPECT_TRUE(Make()->TrainAndEvaluate().ok());
  EXPECT_EQ(estimator_->trained[0].saving_listeners.size(), 0u);
  EXPECT_EQ(estimator_->trained[0].hooks.size(), 1u);
}

// EXP-27
TEST_F(ExperimentTest, AlternatesTrainingAndEvaluation) {
  options_.train_steps = 100;
  options_.export_strategies = {Counted("best")};
  const auto result = Make()->ContinuousTrainAndEval();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Trainings(), 1);
  EXPECT_EQ(estimator_->trained[0].steps, 10);
  EXPECT_EQ(estimator_->trained[0].max_steps, 100);
  EXPECT_EQ(Evaluations(), 1);
  EXPECT_EQ(exported_.size(), 1u);
}

// EXP-28
TEST_F(ExperimentTest, APredicateThatIsFalseAtOnceDoesNothing) {
  const auto result = Make()->ContinuousTrainAndEval([](const absl::optional<EvaluationMetrics>&) { return false; });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->evaluation.has_value());
  EXPECT_TRUE(estimator_->calls.empty());
  EXPECT_TRUE(Make()->ContinuousTrainAndEval().ok());
  EXPECT_EQ(Trainings(), 2) << "the second one made no step";
}

// EXP-30, EXP-31
TEST_F(ExperimentTest, StepsOfAnIteration) {
  EXPECT_EQ(Make()->steps_per_iteration(), 1000);
  options_.train_steps = 500;
  EXPECT_EQ(Make()->steps_per_iteration(), 50);
  options_.train_steps = 5;
  EXPECT_EQ(Make()->steps_per_iteration(), 1);
  options_.train_steps_per_iteration = 1234;
  EXPECT_EQ(Make()->steps_per_iteration(), 1234);
}

// EXP-34, EXP-35
TEST_F(ExperimentTest, AParameterServerOfAClusterWaitsForTheEnd) {
  Become(TaskOf("ps"));
  EXPECT_TRUE(Make()->RunStdServer().ok());
  EXPECT_THAT(estimator_->calls, ElementsAre("await"));
  Become(R"({"task": {"type": "ps"}})");
  EXPECT_TRUE(Make()->RunStdServer().ok()) << "the session knows its master, as --master says it";
  EXPECT_THAT(estimator_->calls, ElementsAre("await"));
  Become("");
  const absl::Status status = Make()->RunStdServer();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a server needs a task type, and in a cluster a master"));
}

// EXP-37
TEST_F(ExperimentTest, RefusesWrongExportStrategies) {
  options_.export_strategies = {ExportStrategy()};
  EXPECT_THAT(ErrorOf(), HasSubstr("an export strategy's name is \"\""));
  options_.export_strategies = {MakeExportStrategy("a/b")};
  EXPECT_THAT(ErrorOf(), HasSubstr("must be the name of a directory"));
  options_.export_strategies = {Counted("a"), Counted("a")};
  EXPECT_THAT(ErrorOf(), HasSubstr("have the name a twice"));
  options_.export_strategies = {ExportStrategy{"a", nullptr}};
  EXPECT_THAT(ErrorOf(), HasSubstr("export strategy a has no export_fn"));
  EXPECT_TRUE(absl::IsInvalidArgument(Counted("a").Export(*estimator_, EvaluationMetrics()).status()))
      << "a result without a checkpoint";
}

// EXP-38
TEST_F(ExperimentTest, ExportStrategiesAreReplaced) {
  options_.export_strategies = {Counted("1")};
  const auto experiment = Make();
  EXPECT_TRUE(experiment->TrainAndEvaluate().ok());
  EXPECT_EQ(exported_.size(), 1u);
  EXPECT_EQ(experiment->ResetExportStrategies()->size(), 1u);
  EXPECT_TRUE(experiment->TrainAndEvaluate().ok());
  EXPECT_EQ(exported_.size(), 1u);
  EXPECT_EQ(experiment->ResetExportStrategies({Counted("2"), Counted("3")})->size(), 0u);
  EXPECT_TRUE(experiment->TrainAndEvaluate().ok());
  EXPECT_THAT(exported_, ElementsAre("1", "2", "3"));
  EXPECT_FALSE(experiment->ResetExportStrategies({ExportStrategy()}).ok());
  EXPECT_EQ(experiment->options().export_strategies.size(), 2u);
}

// EXP-39
TEST_F(ExperimentTest, AddedHooksAreTheExperimentsAlone) {
  const auto first = StopAtStepHook::Create({5, absl::nullopt}).value();
  const auto second = StopAtStepHook::Create({6, absl::nullopt}).value();
  options_.train_monitors = {first.get()};
  const auto experiment = Make();
  experiment->ExtendTrainHooks({second.get()});
  EXPECT_TRUE(experiment->Train().ok());
  EXPECT_THAT(estimator_->trained[0].hooks, ElementsAre(first.get(), second.get()));
  EXPECT_THAT(options_.train_monitors, ElementsAre(first.get()));
  EXPECT_TRUE(experiment->TrainAndEvaluate().ok());
  EXPECT_EQ(estimator_->trained[1].hooks.size(), 3u);
  EXPECT_EQ(experiment->options().train_monitors.size(), 2u) << "what a method adds does not stay";
}

// EXP-40
TEST_F(ExperimentTest, ALocalRunEvaluatesWithItsOwnFrequency) {
  options_.local_eval_frequency = 10;
  options_.min_eval_frequency = 0;
  const auto experiment = Make();
  EXPECT_TRUE(experiment->LocalRun().ok());
  EXPECT_EQ(Trainings(), 1);
  EXPECT_EQ(estimator_->trained[0].hooks.size(), 1u);
  EXPECT_EQ(Evaluations(), 1);
  EXPECT_EQ(experiment->options().min_eval_frequency, 0);
}

TEST_F(ExperimentTest, TestsAllOfItInOneStep) {
  EvaluationHook hook;
  options_.eval_hooks = {&hook};
  options_.export_strategies = {Counted("best")};
  EXPECT_TRUE(Make()->Test().ok());
  EXPECT_EQ(estimator_->trained[0].steps, 1);
  EXPECT_EQ(estimator_->evaluated[0].steps, 1);
  EXPECT_TRUE(estimator_->evaluated[0].hooks.empty());
  EXPECT_EQ(exported_.size(), 1u);
}

TEST_F(ExperimentTest, AnswersWithItsOptions) {
  options_.eval_metrics = {"top_2"};
  options_.train_steps = 700;
  options_.eval_steps = 25;
  const auto experiment = Make();
  EXPECT_EQ(&experiment->estimator(), estimator_.get());
  EXPECT_THAT(experiment->eval_metrics(), ElementsAre("top_2"));
  EXPECT_EQ(experiment->train_steps(), 700);
  EXPECT_EQ(experiment->eval_steps(), 25);
}

// EXP-33 and other wrong options.
TEST_F(ExperimentTest, NamesTheOptionThatIsWrong) {
  options_.train_steps_per_iteration = 0;
  EXPECT_EQ(ErrorOf(), "Experiment's train_steps_per_iteration is 0, must be at least 1");
  options_.train_steps_per_iteration = absl::nullopt;
  options_.train_steps = -5;
  EXPECT_EQ(ErrorOf(), "Experiment's train_steps is -5, must be at least 1");
  options_.train_steps = absl::nullopt;
  options_.eval_delay = -absl::Seconds(1);
  EXPECT_EQ(ErrorOf(), "Experiment's eval_delay is -1s, must be 0 or more");
  options_.eval_delay = absl::ZeroDuration();
  options_.eval_hooks = {nullptr};
  EXPECT_THAT(ErrorOf(), HasSubstr("have one that is null"));
  options_.eval_hooks.clear();
  options_.eval_split = "test";
  options_.eval_input_fn = []() -> absl::StatusOr<std::unique_ptr<Dataset>> { return absl::InternalError("called"); };
  EXPECT_EQ(ErrorOf(), "Experiment's eval_split is test, and eval_input_fn is given; give one");
  options_.eval_split.clear();
  options_.estimator = nullptr;
  EXPECT_EQ(ErrorOf(), "Experiment's estimator is missing");
  Become("");
  EXPECT_TRUE(absl::IsInvalidArgument(Make()->Train(-absl::Seconds(1))));
}

TEST_F(ExperimentTest, AStopOfTheProcessEndsEveryWait) {
  StopSignal stop;
  stop.Request();
  options_.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(Make()->Evaluate().status()));
  EXPECT_TRUE(absl::IsCancelled(Make()->ContinuousEval()));
  EXPECT_TRUE(absl::IsCancelled(Make()->Train(absl::Seconds(1))));
  EXPECT_TRUE(estimator_->calls.empty());
}

}  // namespace
}  // namespace lockstep::train
