#include "lockstep/common/step/training_policy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TrainingPolicyTest, DefaultIsDeterministic) {
  config::v1::TrainingConfig training;
  training.set_replicas_to_aggregate(4);
  EXPECT_EQ(PolicyName(training), "DETERMINISTIC");
  EXPECT_THAT(PolicyText(training), Not(HasSubstr("order of arrival")));
  EXPECT_FALSE(ReadsStreams(training));
  EXPECT_EQ(BatchesTogether(training), 4);
  training.mutable_deterministic();
  EXPECT_EQ(PolicyName(training), "DETERMINISTIC");
  EXPECT_FALSE(ReadsStreams(training));
}

TEST(TrainingPolicyTest, FirstArrivalsReadsStreams) {
  config::v1::TrainingConfig training;
  training.set_replicas_to_aggregate(4);
  training.mutable_first_arrivals();
  EXPECT_EQ(PolicyName(training), "FIRST_ARRIVALS");
  EXPECT_THAT(PolicyText(training), HasSubstr("the first 4 contributions"));
  EXPECT_TRUE(ReadsStreams(training));
  EXPECT_EQ(BatchesTogether(training), 1);
}

TEST(TrainingPolicyTest, AsyncReadsStreams) {
  config::v1::TrainingConfig training;
  training.set_replicas_to_aggregate(1);
  training.mutable_async();
  EXPECT_EQ(PolicyName(training), "ASYNC");
  EXPECT_THAT(PolicyText(training), HasSubstr("not reproducible"));
  EXPECT_TRUE(ReadsStreams(training));
  EXPECT_EQ(BatchesTogether(training), 1);
}

TEST(TrainingPolicyTest, OnlyStreamsStageContributions) {
  config::v1::RunSpec config;
  EXPECT_EQ(StagedContributions(config, /*bytes=*/1 << 20), 0);
  config.mutable_training()->mutable_async();
  EXPECT_EQ(StagedContributions(config, /*bytes=*/1 << 20), 16);
  config.mutable_cluster()->set_max_staged_contributions(2);
  EXPECT_EQ(StagedContributions(config, /*bytes=*/1 << 20), 2);
}

}  // namespace
}  // namespace lockstep
