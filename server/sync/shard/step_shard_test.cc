#include "lockstep/server/sync/shard/step_shard.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/server/optimizer/schedule_registry.h"
#include "lockstep/server/ps/variable_store.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Variables: "mean" [2], which is not trainable, and "w" [3]. Uses one slot and SGD with rate 1.
class StepShardTest : public ::testing::Test {
 protected:
  StepShardTest() {
    v1::ModelSpec model;
    config::v1::OptimizerConfig optimizer;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      variables { name: "mean" dtype: DT_FLOAT shape: 2 }
      variables { name: "w" dtype: DT_FLOAT shape: 3 trainable: true }
      update_ops { variable: "mean" kind: ASSIGN }
    )",
                                                              &model));
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }", &optimizer));
    store_ = VariableStore::Create(model, optimizer).value();
    store_->Initialize(1);
    shard_ = std::make_unique<StepShard>(store_.get(), /*slots=*/1);
  }
  static void Contribute(StepSums* sums, float loss, const std::vector<float>& gradient) {
    v1::SlotReport report;
    report.set_loss(loss);
    report.add_update(std::string(2 * sizeof(float), '\0'));
    sums->AddReports({report});
    StepPiece piece;
    piece.variable = 1;
    piece.content = FloatChunks(gradient.data(), static_cast<int64_t>(gradient.size()));
    EXPECT_TRUE(sums->AddPiece({0, 1}, piece));
  }

  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<StepShard> shard_;
};

TEST_F(StepShardTest, AnUpdateBecomesTheNextStepWhenItIsCommitted) {
  EXPECT_THAT(shard_->segment_order(), ElementsAre(0, 1));
  EXPECT_EQ(shard_->next_values(), nullptr);
  EXPECT_EQ(shard_->num_finished_segments(), 0u);
  const auto sums = shard_->Begin(0);
  EXPECT_FALSE(sums->complete());
  EXPECT_THAT(shard_->finished_segments(), IsEmpty());
  const auto next = shard_->next_values();
  ASSERT_NE(next, nullptr);
  Contribute(sums.get(), 2.5, {1, 2, 3});
  EXPECT_TRUE(sums->complete());
  EXPECT_FALSE(sums->FindNonFinite({0, 1}));
  EXPECT_THAT(shard_->finished_segments(), ElementsAre(1));
  EXPECT_EQ(sums->num_finished_segments(), 1u);
  EXPECT_EQ(shard_->TakeSnapshot().step, 0) << "of the last committed step";
  EXPECT_EQ(shard_->Commit().mean_loss, 2.5);
  EXPECT_EQ(shard_->step(), 1);
  EXPECT_EQ(shard_->values(), next);
  EXPECT_EQ(shard_->next_values(), nullptr);
  EXPECT_THAT(shard_->segment_order(), ElementsAre(1, 0)) << "as they became final";
  EXPECT_EQ(shard_->TakeSnapshot().step, 1);
}

REGISTER_SCHEDULE("broken", [](int64_t step, double initial) { return step == 1 ? std::nan("") : initial; });

TEST_F(StepShardTest, FindsANonFiniteRateBeforeAnyAddition) {
  config::v1::OptimizerConfig optimizer;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 registered: 'broken' }",
                                                            &optimizer));
  ASSERT_TRUE(shard_->SetOptimizer(optimizer).ok());
  auto sums = shard_->Begin(0);
  EXPECT_FALSE(sums->FindNonFinite({0, 1}));
  Contribute(sums.get(), 1, {1, 2, 3});
  shard_->Commit();
  sums = shard_->Begin(1);
  const auto found = sums->FindNonFinite({0, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "learning rate of the schedule \"broken\"");
  EXPECT_FALSE(found->contributed);
}

TEST_F(StepShardTest, EachUpdateHasTheLearningRateOfItsStep) {
  config::v1::OptimizerConfig optimizer;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "sgd {} learning_rate { initial: 8 exponential { decay_steps: 1 decay_rate: 0.5 } }", &optimizer));
  ASSERT_TRUE(shard_->SetOptimizer(optimizer).ok());
  for (int64_t step = 0; step < 3; ++step) {
    const float before = store_->values()->as<float>()[store_->layout().variables()[1].flat_offset];
    const auto sums = shard_->Begin(step);
    const float rate = 8.0f / static_cast<float>(1 << step);
    EXPECT_EQ(shard_->learning_rate(), rate);
    Contribute(sums.get(), 1, {1, 0, 0});
    shard_->Commit();
    EXPECT_EQ(store_->values()->as<float>()[store_->layout().variables()[1].flat_offset], before - rate);
  }
}

TEST_F(StepShardTest, NormsAreOptionalAndChangeNoBit) {
  StepShard::Options options;
  options.norms_every_steps = 2;
  StepShard shard(store_.get(), /*slots=*/1, options);
  const auto commit = [&](int64_t step, const std::vector<float>& gradient) {
    Contribute(shard.Begin(step).get(), 1, gradient);
    return shard.Commit();
  };
  EXPECT_FALSE(commit(0, {-3, -4, 0}).norms.has_value());  // w is (3, 4, 0) plus its initial value
  const absl::Span<const float> flat(store_->values()->as<float>(), store_->layout().flat_elements());
  const int64_t at = store_->layout().variables()[1].flat_offset;
  double weights = 0;
  for (int64_t i = at; i < at + 3; ++i) weights += static_cast<double>(flat[i]) * flat[i];
  const auto norms = commit(1, {0, 5, 12}).norms;
  ASSERT_TRUE(norms.has_value());
  EXPECT_DOUBLE_EQ(norms->gradient, 13);
  EXPECT_DOUBLE_EQ(norms->weights, std::sqrt(weights));
  EXPECT_NEAR(norms->change, 13, 1e-5);
  EXPECT_DOUBLE_EQ(norms->ratio(), norms->change / norms->weights);
  EXPECT_FALSE(commit(2, {1, 1, 1}).norms.has_value());
}

TEST_F(StepShardTest, WhatIsNotFiniteIsNamed) {
  const auto sums = shard_->Begin(0);
  Contribute(sums.get(), 1, {1, std::numeric_limits<float>::quiet_NaN(), 3});
  EXPECT_FALSE(sums->complete());
  const auto found = sums->FindNonFinite({0, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "gradient of w");
  EXPECT_FALSE(found->slot);
}

TEST_F(StepShardTest, ASkippedUpdateCountsAndChangesNothingElse) {
  StepShard::Options options;
  options.skips_non_finite = true;
  StepShard shard(store_.get(), /*slots=*/1, options);
  const auto values = shard.values();
  auto sums = shard.Begin(0);
  Contribute(sums.get(), std::numeric_limits<float>::infinity(), {1, 2, 3});
  EXPECT_TRUE(sums->complete());
  EXPECT_EQ(sums->num_finished_segments(), 0u) << "no value may leave before it is known whether the update counts";
  EXPECT_THAT(shard.finished_segments(), IsEmpty());
  EXPECT_EQ(shard.next_values(), nullptr);
  const auto skipped = shard.Commit();
  ASSERT_TRUE(skipped.skipped);
  EXPECT_EQ(skipped.skipped->what, "loss");
  EXPECT_EQ(skipped.mean_loss, std::numeric_limits<double>::infinity());
  EXPECT_EQ(shard.step(), 1);
  EXPECT_EQ(shard.values(), values);
  sums = shard.Begin(1);
  Contribute(sums.get(), 1, {1, 2, 3});
  EXPECT_FALSE(shard.Commit().skipped);
  EXPECT_EQ(shard.step(), 2);
  EXPECT_NE(shard.values(), values);
}

TEST_F(StepShardTest, AnUpdateThatWasGivenUpCanRestart) {
  auto sums = shard_->Begin(0);
  Contribute(sums.get(), 1, {1, 2, 3});
  EXPECT_TRUE(sums->complete());
  shard_->GiveUp();
  EXPECT_EQ(shard_->step(), 0);
  EXPECT_EQ(shard_->next_values(), nullptr);
  EXPECT_EQ(shard_->num_finished_segments(), 0u);
  sums = shard_->Begin(0);
  EXPECT_FALSE(sums->complete());
  Contribute(sums.get(), 1, {4, 5, 6});
  shard_->Commit();
  EXPECT_EQ(shard_->step(), 1);
}

TEST_F(StepShardTest, WhatIsStillAddedAfterAnAbortCountsNoMore) {
  const auto sums = shard_->Begin(0);
  const auto values = shard_->values();
  shard_->Abort();
  Contribute(sums.get(), 1, {1, 2, 3});
  EXPECT_EQ(shard_->step(), 0);
  EXPECT_EQ(shard_->values(), values);
  EXPECT_EQ(shard_->next_values(), nullptr);
  EXPECT_EQ(shard_->num_finished_segments(), 0u);
}

}  // namespace
}  // namespace lockstep
