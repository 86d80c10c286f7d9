#include "lockstep/server/chief/run/run_settings.h"

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

TEST_F(RunSettingsTest, AChangeKeepsWhatHeldBeforeAndForgetsWhatWasDeclaredWithIt) {
  AddChange(5, WithRate(0.01f), &record_);
  EXPECT_EQ(RateOf(record_.config()), 0.01f);
  ASSERT_EQ(record_.change_size(), 1);
  EXPECT_EQ(record_.change(0).step(), 5);
  EXPECT_EQ(RateOf(record_.change(0).before()), 0.1f);
  EXPECT_TRUE(record_.change(0).by_program());
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
  EXPECT_EQ(spec.training().seed(), 7u) << "all else is as it was given";
  // A change that somebody asked for at a start is the start of what follows.
  record_.add_change()->set_step(9);
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
  EXPECT_TRUE(DropLaterChanges(4, &record_));
  EXPECT_EQ(WithChanges(record_, with_batch(4)).input().batch_size(), 4);
}

TEST_F(RunSettingsTest, DropsTheChangesOfStepsThatAreComputedAgain) {
  AddChange(5, WithRate(0.01f), &record_);
  AddChange(8, WithRate(0.001f), &record_);
  Declare();
  EXPECT_FALSE(DropLaterChanges(8, &record_)) << "the state of step 8 is the same before and after";
  EXPECT_EQ(record_.model_part_size(), 1);
  EXPECT_TRUE(DropLaterChanges(7, &record_));
  EXPECT_EQ(RateOf(record_.config()), 0.01f);
  EXPECT_EQ(record_.change_size(), 1);
  EXPECT_EQ(record_.model_part_size(), 0) << "they were declared with other settings";
  EXPECT_TRUE(DropLaterChanges(0, &record_));
  EXPECT_EQ(RateOf(record_.config()), 0.1f);
  EXPECT_EQ(record_.change_size(), 0);
}

}  // namespace
}  // namespace lockstep
