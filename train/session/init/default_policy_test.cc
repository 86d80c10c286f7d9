#include "lockstep/train/session/init/default_policy.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep::train {
namespace {

using ::lockstep::config::v1::TrainingConfig;
using ::testing::HasSubstr;

class DefaultPolicyTest : public ::testing::Test {
 protected:
  // Returns options whose configuration contains `training` and `other`.
  SessionOptions OptionsOf(const std::string& training, const std::string& other = "") {
    SessionOptions options;
    options.op = *CreateTrainOp(absl::StrCat(R"(
      model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
      input { split { name: "train" synthetic { examples: 16 shape: 4 classes: 2 } } batch_size: 4 }
      optimizer { sgd {} learning_rate { initial: 1 } } training { steps: 5 )",
                                             training, " } ", other));
    options.fs = &fs_;
    options.logdir = "/run";
    return options;
  }
  // Writes the record of a run with `training` to the logdir.
  void Record(const std::string& training) {
    v1::RunRecord record;
    *record.mutable_config() = OptionsOf(training).op.spec;
    ASSERT_TRUE(fs_.CreateDirectory("/run").ok());
    ASSERT_TRUE(WriteRunRecord(&fs_, "/run", record).ok());
  }
  static TrainingConfig::PolicyCase PolicyOf(SessionOptions options) {
    EXPECT_TRUE(ApplyDefaultPolicy(&options).ok());
    return options.op.spec.training().policy_case();
  }

  MemoryFileSystem fs_;
};

TEST_F(DefaultPolicyTest, ARunIsAsynchronousByDefault) {
  EXPECT_EQ(PolicyOf(OptionsOf("")), TrainingConfig::kAsync);
  EXPECT_EQ(PolicyOf(OptionsOf("replicas_to_aggregate: 1")), TrainingConfig::kAsync);
  EXPECT_EQ(PolicyOf(OptionsOf("replicas_to_aggregate: 2")), TrainingConfig::POLICY_NOT_SET);
  EXPECT_EQ(PolicyOf(OptionsOf("deterministic {}")), TrainingConfig::kDeterministic);
  EXPECT_EQ(PolicyOf(OptionsOf("first_arrivals {}")), TrainingConfig::kFirstArrivals);
}

TEST_F(DefaultPolicyTest, WithoutALogdirThereIsNoRunToContinue) {
  SessionOptions options = OptionsOf("");
  options.logdir.clear();
  EXPECT_EQ(PolicyOf(options), TrainingConfig::kAsync);
}

TEST_F(DefaultPolicyTest, ADeterministicRunContinues) {
  Record("");
  EXPECT_EQ(PolicyOf(OptionsOf("")), TrainingConfig::POLICY_NOT_SET);
}

TEST_F(DefaultPolicyTest, ARunThatWasDeterministicByChoiceContinues) {
  Record("deterministic {}");
  EXPECT_EQ(PolicyOf(OptionsOf("")), TrainingConfig::POLICY_NOT_SET);
}

TEST_F(DefaultPolicyTest, AnotherRunIsLeftToTheChief) {
  Record("first_arrivals {}");
  EXPECT_EQ(PolicyOf(OptionsOf("")), TrainingConfig::kAsync) << "which it refuses by name";
}

TEST_F(DefaultPolicyTest, AWorkersConfigurationIsTheChiefs) {
  SessionOptions options = OptionsOf("");
  options.is_chief = false;
  EXPECT_EQ(PolicyOf(options), TrainingConfig::POLICY_NOT_SET);
}

TEST_F(DefaultPolicyTest, WhatExcludesAsynchronousTrainingIsNamed) {
  SessionOptions options = OptionsOf("", "audit {}");
  const std::string message(ApplyDefaultPolicy(&options).message());
  EXPECT_THAT(message, HasSubstr("audit is set, but the policy is ASYNC"));
  EXPECT_THAT(message, HasSubstr("give a sync_optimizer, or training { deterministic {} }"));
}

}  // namespace
}  // namespace lockstep::train
