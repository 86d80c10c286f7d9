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
  void Change(int64_t step, const config::v1::RunSpec& after) {
    AddChange(step, DifferenceOf(record_.config(), after), after, &record_);
  }
  // Returns the state that a checkpoint saved now would hold.
  v1::SessionState StateNow() const {
    v1::SessionState state;
    state.set_changes(NumChanges(record_));
    *state.mutable_settings() = SettingsOf(record_.config());
    return state;
  }
  static v1::SessionState StateWith(int64_t changes) {
    v1::SessionState state;
    state.set_changes(changes);
    return state;
  }

  v1::RunRecord record_;
};

TEST_F(RunSettingsTest, AChangeKeepsOnlyTheDifferences) {
  Change(5, WithRate(0.01f));
  EXPECT_EQ(RateOf(record_.config()), 0.01f);
  ASSERT_EQ(record_.change_size(), 1);
  EXPECT_EQ(record_.change(0).step(), 5);
  EXPECT_FALSE(record_.change(0).has_before());
  EXPECT_EQ(record_.change(0).replaced().learning_rate().initial(), 0.1f);
  EXPECT_FALSE(record_.change(0).replaced().has_optimizer());
  EXPECT_FALSE(record_.change(0).replaced().has_batch_size());
  EXPECT_TRUE(record_.change(0).by_program());
}

TEST_F(RunSettingsTest, OnlyComputedSettingsDropDeclarations) {
  Change(5, WithRate(0.01f));
  EXPECT_NE(record_.declared_by(), "");
  EXPECT_EQ(record_.model_part_size(), 1);
  EXPECT_TRUE(record_.has_canary());
  config::v1::RunSpec clipped = WithRate(0.01f);
  clipped.mutable_optimizer()->mutable_clip()->set_by_norm(1);
  Change(6, clipped);
  EXPECT_EQ(record_.declared_by(), "");
  EXPECT_EQ(record_.model_part_size(), 0);
  EXPECT_FALSE(record_.has_canary());
}

TEST_F(RunSettingsTest, AProgramStartsAsBeforeWithItsChanges) {
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.1f);
  EXPECT_EQ(RateOf(WithChanges(record_, WithRate(0.1f))), 0.1f);
  Change(5, WithRate(0.01f));
  Change(8, WithRate(0.001f));
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.1f);
  const config::v1::RunSpec spec = WithChanges(record_, WithRate(0.1f));
  EXPECT_EQ(RateOf(spec), 0.001f);
  EXPECT_EQ(spec.training().seed(), 7u) << "all other fields are as given";
  // A change requested at startup is the base of all later changes.
  record_.add_change()->set_step(9);
  *record_.mutable_change(2)->mutable_before() = record_.config();
  *record_.mutable_config() = WithRate(0.5f);
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.5f);
  Change(10, WithRate(0.25f));
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.5f);
}

TEST_F(RunSettingsTest, AProgramsBatchSizeStaysToo) {
  const auto with_batch = [](int64_t batch_size) {
    config::v1::RunSpec spec = WithRate(0.1f);
    spec.mutable_input()->set_batch_size(batch_size);
    return spec;
  };
  *record_.mutable_config() = with_batch(4);
  Change(5, with_batch(8));
  EXPECT_EQ(WithChanges(record_, with_batch(4)).input().batch_size(), 8);
  EXPECT_EQ(ConfigAtStart(record_).input().batch_size(), 4);
  EXPECT_TRUE(DropLaterChanges(4, {}, &record_));
  EXPECT_EQ(WithChanges(record_, with_batch(4)).input().batch_size(), 4);
}

TEST_F(RunSettingsTest, EachChangeIsTakenBackByItself) {
  record_.mutable_config()->mutable_input()->set_batch_size(4);
  record_.mutable_config()->mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
  std::vector<config::v1::RunSpec> specs = {record_.config()};
  const auto change = [&](const std::function<void(config::v1::RunSpec*)>& edit) {
    config::v1::RunSpec spec = specs.back();
    edit(&spec);
    Change(static_cast<int64_t>(specs.size()), spec);
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
    DropLaterChanges(last, {}, &record_);
    EXPECT_EQ(record_.config().DebugString(), specs[static_cast<size_t>(last)].DebugString());
  }
}

TEST_F(RunSettingsTest, DropsTheChangesOfStepsThatAreComputedAgain) {
  Change(5, WithRate(0.01f));
  config::v1::RunSpec clipped = WithRate(0.001f);
  clipped.mutable_optimizer()->mutable_clip()->set_by_norm(1);
  Change(8, clipped);
  Declare();
  EXPECT_FALSE(DropLaterChanges(8, {}, &record_)) << "the state of step 8 is the same before and after";
  EXPECT_EQ(record_.change_size(), 2);
  EXPECT_EQ(record_.model_part_size(), 1);
  EXPECT_TRUE(DropLaterChanges(7, {}, &record_));
  EXPECT_EQ(RateOf(record_.config()), 0.01f);
  EXPECT_EQ(record_.change_size(), 1);
  EXPECT_EQ(record_.model_part_size(), 0) << "they were declared with other settings";
  Declare();
  EXPECT_FALSE(DropLaterChanges(0, {}, &record_)) << "workers compute the same with any rate";
  EXPECT_EQ(record_.model_part_size(), 1);
  EXPECT_EQ(RateOf(record_.config()), 0.1f);
  EXPECT_EQ(record_.change_size(), 0);
}

TEST_F(RunSettingsTest, KeepsTheChangesThatTheCheckpointHas) {
  Change(5, WithRate(0.01f));
  Change(5, WithRate(0.001f));
  DropLaterChanges(5, StateWith(1), &record_);
  EXPECT_EQ(record_.change_size(), 1) << "the checkpoint was taken between the two";
  EXPECT_EQ(RateOf(record_.config()), 0.01f);
  DropLaterChanges(5, StateWith(0), &record_);
  EXPECT_EQ(RateOf(record_.config()), 0.1f);
}

TEST_F(RunSettingsTest, ManyChangesTakeNoMoreRoomThanSome) {
  std::vector<v1::SessionState> checkpoints;
  size_t most = 0;
  for (int step = 1; step <= 5000; ++step) {
    config::v1::RunSpec spec = WithRate(0.1f + static_cast<float>(step));
    spec.mutable_input()->set_batch_size(step);
    spec.mutable_optimizer()->mutable_clip()->set_by_norm(static_cast<float>(1 + step % 7));
    Change(step, spec);
    if (step % 500 == 0) checkpoints.push_back(StateNow());
    if (step == 1000) most = record_.ByteSizeLong();
  }
  EXPECT_LE(record_.ByteSizeLong(), 2 * most);
  EXPECT_EQ(NumChanges(record_), 5000);
  EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.1f) << "the program starts the run as it always did";
  EXPECT_EQ(ConfigAtStart(record_).input().batch_size(), 0);
  EXPECT_FALSE(ConfigAtStart(record_).optimizer().has_clip());
  for (int64_t step = 5000; step > 0; step -= 500) {
    DropLaterChanges(step, checkpoints.back(), &record_);
    EXPECT_EQ(NumChanges(record_), step);
    EXPECT_EQ(RateOf(record_.config()), 0.1f + static_cast<float>(step)) << "the checkpoint of step " << step;
    EXPECT_EQ(record_.config().input().batch_size(), step);
    EXPECT_EQ(RateOf(ConfigAtStart(record_)), 0.1f);
    checkpoints.pop_back();
  }
}

TEST_F(RunSettingsTest, ChangesOfEarlierVersionsAreNotMerged) {
  for (int step = 1; step <= 300; ++step) {
    Change(step, WithRate(static_cast<float>(step)));
    record_.mutable_change(record_.change_size() - 1)->clear_count();
  }
  EXPECT_EQ(record_.change_size(), 300) << "their checkpoints have no settings";
  DropLaterChanges(7, StateWith(7), &record_);
  EXPECT_EQ(RateOf(record_.config()), 7);
}

TEST_F(RunSettingsTest, ManyAssignmentsAreCounted) {
  for (int step = 1; step <= 1000; ++step) {
    v1::RunRecord::Assignment assignment;
    assignment.set_step(step);
    AddAssignment(assignment, &record_);
    EXPECT_EQ(record_.assignment(record_.assignment_size() - 1).step(), step);
    EXPECT_EQ(record_.earlier_assignments() + record_.assignment_size(), step);
    EXPECT_LE(record_.assignment_size(), 200);
  }
  KeepAssignments(990, &record_);
  EXPECT_EQ(record_.assignment(record_.assignment_size() - 1).step(), 990);
  KeepAssignments(3, &record_);
  EXPECT_EQ(record_.assignment_size(), 0);
  EXPECT_EQ(record_.earlier_assignments(), 3);
}

TEST_F(RunSettingsTest, ComparesWhatWorkersComputeWith) {
  EXPECT_TRUE(DifferenceOf(WithRate(0.1f), WithRate(0.1f)).empty());
  EXPECT_FALSE(DifferenceOf(WithRate(0.1f), WithRate(0.2f)).empty());
  EXPECT_FALSE(DifferenceOf(WithRate(0.1f), WithRate(0.2f)).for_workers);
  config::v1::RunSpec other = WithRate(0.1f);
  other.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  EXPECT_FALSE(DifferenceOf(WithRate(0.1f), other).for_workers);
  other.mutable_optimizer()->mutable_clip()->set_by_norm(1);
  EXPECT_TRUE(DifferenceOf(WithRate(0.1f), other).for_workers);
}

}  // namespace
}  // namespace lockstep
