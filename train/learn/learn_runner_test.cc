#include "lockstep/train/learn/learn_runner.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/learn/testing/fake_estimator.h"

namespace lockstep::train::learn_runner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LearnRunnerTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Experiment>> Make(const RunConfig& config) {
    estimator_ = std::make_shared<FakeEstimator>(config, &clock_);
    ExperimentOptions options;
    options.estimator = estimator_;
    options.clock = &clock_;
    options.train_steps = 100;
    return Experiment::Create(std::move(options));
  }
  ExperimentFunction Function() {
    return [this](const RunConfig& config) { return Make(config); };
  }
  // Returns the estimator calls that the cluster's task makes.
  std::vector<std::string> CallsOf(const std::string& tf_config, const absl::optional<std::string>& schedule = {}) {
    const auto result = learn_runner::Run(Function(), ConfigOf(tf_config), schedule);
    EXPECT_TRUE(result.ok()) << result.status();
    return estimator_->calls;
  }

  JumpingClock clock_;
  std::shared_ptr<FakeEstimator> estimator_;
};

// LR-01, LR-02, LR-03
TEST_F(LearnRunnerTest, TheTaskSaysWhatItDoes) {
  EXPECT_THAT(CallsOf(TaskOf("worker", 0)), ElementsAre("train"));
  EXPECT_THAT(CallsOf(TaskOf("chief")), ElementsAre("train", "evaluate "));
  EXPECT_THAT(CallsOf(R"({"cluster": {"master": ["m:1"], "worker": ["w:1"]}, "task": {"type": "master"}})"),
              ElementsAre("train", "evaluate "));
  EXPECT_THAT(CallsOf(TaskOf("ps")), ElementsAre("await"));
  EXPECT_THAT(CallsOf(TaskOf("evaluator")), ElementsAre("evaluate continuous"));
}

// LR-05
TEST_F(LearnRunnerTest, AloneItTrainsAndEvaluates) {
  EXPECT_THAT(CallsOf(""), ElementsAre("train", "evaluate "));
  EXPECT_THAT(CallsOf(R"({"cluster": {"worker": ["w:1"]}, "task": {"type": "worker"}})"),
              ElementsAre("train", "evaluate "));
}

TEST_F(LearnRunnerTest, AScheduleIsChosenByName) {
  EXPECT_THAT(CallsOf(TaskOf("chief"), "train"), ElementsAre("train"));
  EXPECT_THAT(CallsOf("", "evaluate"), ElementsAre("evaluate one_pass"));
  EXPECT_THAT(CallsOf("", "continuous_eval_on_train_data"), ElementsAre("evaluate continuous_on_train_data"));
  EXPECT_THAT(CallsOf("", "continuous_train_and_eval"), ElementsAre("train", "evaluate one_pass"));
  EXPECT_THAT(CallsOf("", "local_run"), ElementsAre("train", "evaluate "));
  EXPECT_THAT(CallsOf("", "test"), ElementsAre("train", "evaluate one_pass"));
}

// LR-06
TEST_F(LearnRunnerTest, RefusesAScheduleThatThereIsNot) {
  const absl::Status status = learn_runner::Run(Function(), ConfigOf(""), "nope").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("there is no schedule \"nope\", must be one of train, evaluate"));
  EXPECT_EQ(estimator_, nullptr) << "nothing was made";
}

TEST_F(LearnRunnerTest, RefusesWhatItCannotRun) {
  EXPECT_TRUE(absl::IsInvalidArgument(learn_runner::Run(ExperimentFunction(), ConfigOf("")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      learn_runner::Run([](const RunConfig&) { return std::unique_ptr<Experiment>(); }, ConfigOf("")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(learn_runner::Run(Function(), *RunConfig::Create({}, TfConfig())).status()))
      << "no model_dir";
  const auto changes = [this](const RunConfig& config) {
    return Make(*config.Replace([](RunConfigOptions* options) { options->model_dir = "/other"; }));
  };
  EXPECT_THAT(std::string(learn_runner::Run(changes, ConfigOf("")).status().message()),
              HasSubstr("has changed the RunConfig"));
  const auto changes_seed = [this](const RunConfig& config) {
    return Make(*config.Replace([](RunConfigOptions* options) { options->tf_random_seed = 3; }));
  };
  EXPECT_TRUE(learn_runner::Run(changes_seed, ConfigOf("")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(learn_runner::Run(Function(), ConfigOf(""), "run_std_server").status()));
}

TEST_F(LearnRunnerTest, AScheduleThatEvaluatesNeedsAModelDir) {
  const auto run = [this](const std::string& tf_config, const absl::optional<std::string>& schedule) {
    return learn_runner::Run(Function(), RunConfig::Create({}, ParseTfConfig(tf_config).value()).value(), schedule)
        .status();
  };
  // A master that has workers and does not run in the cloud is a worker that evaluates.
  const absl::Status master = run(R"({"cluster": {"master": ["m:1"], "worker": ["w:1"]}, "task": {"type": "master"},
                                      "environment": "local"})",
                                  absl::nullopt);
  EXPECT_TRUE(absl::IsInvalidArgument(master)) << master;
  EXPECT_THAT(std::string(master.message()), HasSubstr("no model_dir"));
  for (const char* schedule : {"evaluate", "continuous_eval", "continuous_eval_on_train_data", "train_and_evaluate",
                               "continuous_train_and_eval", "local_run", "test"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(run(TaskOf("worker"), std::string(schedule)))) << schedule;
  }
  EXPECT_EQ(estimator_, nullptr) << "nothing was made";
  EXPECT_TRUE(run(TaskOf("worker"), absl::nullopt).ok());
  EXPECT_TRUE(run(TaskOf("ps"), absl::nullopt).ok());
}

TEST_F(LearnRunnerTest, AnOutputDirIsTheModelDir) {
  unsetenv(kTfConfigVariable);
  EXPECT_TRUE(learn_runner::Run(Function(), std::string("/out")).ok());
  EXPECT_EQ(estimator_->config().model_dir(), "/out");
}

TEST_F(LearnRunnerTest, TheExperimentGetsItsHparams) {
  std::string rate;
  const TunedExperimentFunction make = [&](const RunConfig& config, const HyperParameters& hparams) {
    rate = hparams.at("rate");
    return Make(config);
  };
  EXPECT_TRUE(learn_runner::Run(make, ConfigOf(""), {{"rate", "0.3"}}, "train").ok());
  EXPECT_EQ(rate, "0.3");
  EXPECT_THAT(estimator_->calls, ElementsAre("train"));
  EXPECT_TRUE(absl::IsInvalidArgument(learn_runner::Run(TunedExperimentFunction(), ConfigOf(""), {}).status()));
}

TEST_F(LearnRunnerTest, ATunerRunsItsTrials) {
  class TwoRates : public Tuner {
   public:
    absl::StatusOr<bool> NextTrial() override { return ++trial_ <= 2; }
    absl::Status RunExperiment(const TunedExperimentFunction& make) override {
      const auto experiment = make(ConfigOf(""), {{"rate", absl::StrCat(0.1 * trial_)}});
      if (!experiment.ok()) return experiment.status();
      return (*experiment)->TrainAndEvaluate().status();
    }

   private:
    int trial_ = 0;
  } tuner;
  std::vector<std::string> rates;
  const TunedExperimentFunction make = [&](const RunConfig& config, const HyperParameters& parameters) {
    rates.push_back(parameters.at("rate"));
    return Make(config);
  };
  EXPECT_TRUE(Tune(make, &tuner).ok());
  EXPECT_THAT(rates, ElementsAre("0.1", "0.2"));
  EXPECT_TRUE(absl::IsInvalidArgument(Tune(make, nullptr)));
  EXPECT_TRUE(absl::IsInvalidArgument(Tune(nullptr, &tuner)));
}

}  // namespace
}  // namespace lockstep::train::learn_runner
