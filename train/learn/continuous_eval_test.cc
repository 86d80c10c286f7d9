// Tests when the evaluation of a run's checkpoints ends, and which checkpoints it skips.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/learn/checkpoint_evaluation.h"
#include "lockstep/train/learn/experiment.h"
#include "lockstep/train/learn/testing/fake_estimator.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ContinuousEvalTest : public ::testing::Test {
 protected:
  ContinuousEvalTest() { Renew(); }
  void Renew() {
    estimator_ = std::make_shared<FakeEstimator>(ConfigOf(""), &clock_);
    options_.estimator = estimator_;
    options_.clock = &clock_;
  }
  // Evaluates for at most `rounds` rounds.
  absl::Status Run(int rounds) {
    ContinuousEvalOptions options;
    rounds_ = 0;
    options.predicate = [this, rounds](const absl::optional<EvaluationMetrics>&) { return ++rounds_ <= rounds; };
    return Experiment::Create(options_).value()->ContinuousEval(options);
  }
  int Evaluations() const { return static_cast<int>(estimator_->evaluated.size()); }

  JumpingClock clock_;
  std::shared_ptr<FakeEstimator> estimator_;
  ExperimentOptions options_;
  int rounds_ = 0;
};

TEST_F(ContinuousEvalTest, ACheckpointThatIsNotThereOrDamagedIsSkipped) {
  for (const absl::Status& failure : {absl::NotFoundError("gone"), absl::DataLossError("damaged")}) {
    Renew();
    estimator_->fails_at = 1;
    estimator_->failure = failure;
    if (absl::IsNotFound(failure)) estimator_->next = "/model/model.ckpt-200";
    EXPECT_TRUE(Run(4).ok());
    EXPECT_EQ(Evaluations(), absl::IsNotFound(failure) ? 2 : 1) << "a damaged one is looked at once";
  }
  Renew();
  estimator_->latest = absl::nullopt;
  EXPECT_TRUE(Run(3).ok());
  EXPECT_EQ(Evaluations(), 0) << "there is none";
}

TEST_F(ContinuousEvalTest, WhatIsNotThereBesideTheCheckpointIsAnError) {
  estimator_->fails_at = 1;
  estimator_->failure = absl::NotFoundError("no such file: /nonexist/test.libsvm");
  const absl::Status status = Run(4);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexist/test.libsvm"));
  EXPECT_EQ(Evaluations(), 1);
}

TEST_F(ContinuousEvalTest, AnExportOfACheckpointThatIsGoneIsSkipped) {
  bool gone = true;
  ExportStrategy strategy;
  strategy.name = "best";
  strategy.export_fn = [&](Estimator&, const std::string& directory,
                           const EvaluationMetrics&) -> absl::StatusOr<std::string> {
    if (gone) estimator_->latest = "/model/model.ckpt-200";
    return absl::NotFoundError("no such file");
  };
  options_.export_strategies = {strategy};
  EXPECT_TRUE(Run(1).ok());
  gone = false;
  EXPECT_TRUE(absl::IsNotFound(Run(1)));
}

TEST_F(ContinuousEvalTest, EndsWithTheLastStepOfTheRunAndNotWithItsOwn) {
  options_.train_steps = 50;
  estimator_->last_step = 600;
  EXPECT_TRUE(Run(4).ok());
  EXPECT_EQ(rounds_, 5) << "step 100 of 600: it goes on, although it was told 50";
  Renew();
  options_.train_steps = 6000;
  estimator_->last_step = 100;
  EXPECT_TRUE(Run(4).ok());
  EXPECT_EQ(rounds_, 2) << "before the round and after it";
  Renew();
  options_.train_steps = absl::nullopt;
  estimator_->last_step = 100;
  EXPECT_TRUE(Run(4).ok());
  EXPECT_EQ(rounds_, 2);
  Renew();
  options_.train_steps = 100;
  EXPECT_TRUE(Run(4).ok());
  EXPECT_EQ(rounds_, 2) << "no run is recorded: its own steps count";
}

TEST_F(ContinuousEvalTest, BesideTheTrainingWhatIsNotThereIsAnErrorToo) {
  absl::optional<std::string> latest = std::string("model.ckpt-1");
  absl::optional<std::string> after;
  std::vector<std::string> evaluated;
  CheckpointEvaluationOptions options;
  options.check_interval = absl::ZeroDuration();
  options.clock = &clock_;
  options.latest_checkpoint = [&] { return latest; };
  options.evaluate = [&](const std::string& checkpoint) {
    evaluated.push_back(checkpoint);
    latest = after;
    return absl::NotFoundError("no such file");
  };
  CheckpointEvaluationHook hook(options);
  RunContext context(nullptr);
  after = "model.ckpt-2";
  EXPECT_TRUE(hook.AfterRun(context, {}).ok()) << "it was followed by another";
  EXPECT_TRUE(absl::IsNotFound(hook.AfterRun(context, {})));
  EXPECT_THAT(evaluated, ElementsAre("model.ckpt-1", "model.ckpt-2"));
}

}  // namespace
}  // namespace lockstep::train
