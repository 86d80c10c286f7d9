#include "lockstep/server/chief/run/run_settings.h"

#include <cstdint>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

config::v1::RunSpec WithRate(float rate) {
  config::v1::RunSpec spec;
  spec.mutable_optimizer()->mutable_learning_rate()->set_initial(rate);
  spec.mutable_training()->set_seed(7);
  return spec;
}
float RateOf(const config::v1::RunSpec& spec) { return spec.optimizer().learning_rate().initial(); }

class RunSettingsTest : public ::testing::Test {
 protected:
  RunSettingsTest() {
    *record_.mutable_config() = WithRate(0.1f);
    Declare();
  }
  void Declare() {
    record_.set_declared_by("worker-0 on a");
    record_.add_model_part()->set_name("clips");
    record_.mutable_canary()->set_computed_by("worker-0 on a");
  }

  v1::RunRecord record_;
};

TEST_F(RunSettingsTest, AChangeKeepsOnlyTheDifferences) {
  AddChange(5, WithRate(0.01f), &record_);
  EXPECT_EQ(RateOf(record_.config()), 0.01f);
  ASSERT_EQ(record_.change_size(), 1);
  EXPECT_EQ(record_.change(0).step(), 5);
  EXPECT_FALSE(record_.change(0).has_before());
  EXPECT_EQ(record_.change(0).replaced().learning_rate().initial(), 0.1f);
  EXPECT_FALSE(record_.change(0).replaced().has_optimizer());
  EXPECT_FALSE(record_.change(0).replaced().has_batch_size());
  EXPECT_TRUE(record_.change(0).by_program());
}

TEST_F(RunSettingsTest, OnlyWhatWorkersComputeWithForgetsTheirDeclaration) {
  AddChange(5, WithRate(0.01f), &record_);
  EXPECT_NE(record_.declared_by(), "");
  EXPECT_EQ(record_.model_part_size(), 1);
  EXPECT_TRUE(record_.has_canary());
  config::v1::RunSpec clipped = WithRate(0.01f);
  clipped.mutable_optimizer()->mutable_clip()->set_by_norm(1);
  AddChange(6, clipped, &record_);
  EXPECT_EQ(record_.declared_by(), "");
  EXPECT_EQ(record_.model_part_size(), 0);
  EXPECT_FALSE(record_.has_canary());
}

TEST_F(RunSettingsTest, AProgramStartsTheRunAsItAlwaysDidAndComputesWithItsChanges) {
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.1f);
  EXPECT_EQ(RateOf(WithChanges(record_, WithRate(0.1f))), 0.1f);
  AddChange(5, WithRate(0.01f), &record_);
  AddChange(8, WithRate(0.001f), &record_);
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.1f);
  const config::v1::RunSpec spec = WithChanges(record_, WithRate(0.1f));
  EXPECT_EQ(RateOf(spec), 0.001f);
  EXPECT_EQ(spec.training().seed(), 7u) << "all other fields are as given";
  // A change that was requested at a start is the base of all later changes.
  record_.add_change()->set_step(9);
  *record_.mutable_change(2)->mutable_before() = record_.config();
  *record_.mutable_config() = WithRate(0.5f);
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.5f);
  AddChange(10, WithRate(0.25f), &record_);
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.5f);
}

TEST_F(RunSettingsTest, AProgramsBatchSizeStaysToo) {
  const auto with_batch = [](int64_t batch_size) {
    config::v1::RunSpec spec = WithRate(0.1f);
    spec.mutable_input()->set_batch_size(batch_size);
    return spec;
  };
  *record_.mutable_config() = with_batch(4);
  AddChange(5, with_batch(8), &record_);
  EXPECT_EQ(WithChanges(record_, with_batch(4)).input().batch_size(), 8);
  EXPECT_EQ(ConfigAtStart(record_).input().batch_size(), 4);
  EXPECT_TRUE(DropLaterChanges(4, absl::nullopt, &record_));
  EXPECT_EQ(WithChanges(record_, with_batch(4)).input().batch_size(), 4);
}

TEST_F(RunSettingsTest, EachChangeIsTakenBackByItself) {
  record_.mutable_config()->mutable_input()->set_batch_size(4);
  record_.mutable_config()->mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
  std::vector<config::v1::RunSpec> specs = {record_.config()};
  const auto change = [&](const std::function<void(config::v1::RunSpec*)>& edit) {
    config::v1::RunSpec spec = specs.back();
    edit(&spec);
    AddChange(static_cast<int64_t>(specs.size()), spec, &record_);
    specs.push_back(spec);
  };
  change([](config::v1::RunSpec* spec) { spec->mutable_optimizer()->mutable_momentum()->clear_momentum(); });
  change([](config::v1::RunSpec* spec) { spec->mutable_input()->set_batch_size(7); });
  change([](config::v1::RunSpec* spec) { spec->mutable_optimizer()->mutable_clip()->set_by_norm(1); });
  change([](config::v1::RunSpec* spec) {
    spec->mutable_optimizer()->clear_clip();
    spec->mutable_optimizer()->mutable_learning_rate()->mutable_piecewise()->add_values(0.5f);
    spec->mutable_input()->set_batch_size(1);
  });
  for (auto last = static_cast<int64_t>(specs.size()) - 1; last >= 0; --last) {
    DropLaterChanges(last, absl::nullopt, &record_);
    EXPECT_EQ(record_.config().DebugString(), specs[static_cast<size_t>(last)].DebugString());
  }
}

TEST_F(RunSettingsTest, DropsTheChangesOfStepsThatAreComputedAgain) {
  AddChange(5, WithRate(0.01f), &record_);
  config::v1::RunSpec clipped = WithRate(0.001f);
  clipped.mutable_optimizer()->mutable_clip()->set_by_norm(1);
  AddChange(8, clipped, &record_);
  Declare();
  EXPECT_FALSE(DropLaterChanges(8, absl::nullopt, &record_)) << "the state of step 8 is the same before and after";
  EXPECT_EQ(record_.change_size(), 2);
  EXPECT_EQ(record_.model_part_size(), 1);
  EXPECT_TRUE(DropLaterChanges(7, absl::nullopt, &record_));
  EXPECT_EQ(RateOf(record_.config()), 0.01f);
  EXPECT_EQ(record_.change_size(), 1);
  EXPECT_EQ(record_.model_part_size(), 0) << "they were declared with other settings";
  Declare();
  EXPECT_FALSE(DropLaterChanges(0, absl::nullopt, &record_)) << "workers compute the same with any rate";
  EXPECT_EQ(record_.model_part_size(), 1);
  EXPECT_EQ(RateOf(record_.config()), 0.1f);
  EXPECT_EQ(record_.change_size(), 0);
}

TEST_F(RunSettingsTest, KeepsTheChangesThatTheCheckpointHas) {
  AddChange(5, WithRate(0.01f), &record_);
  AddChange(5, WithRate(0.001f), &record_);
  DropLaterChanges(5, /*changes=*/1, &record_);
  EXPECT_EQ(record_.change_size(), 1) << "the checkpoint was taken between the two";
  EXPECT_EQ(RateOf(record_.config()), 0.01f);
  DropLaterChanges(5, /*changes=*/0, &record_);
  EXPECT_EQ(RateOf(record_.config()), 0.1f);
}

}  // namespace
}  // namespace lockstep
