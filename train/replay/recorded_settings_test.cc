#include "lockstep/train/replay/recorded_settings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Returns the record of a run with a batch size of 4, then of 5 from step 10 on, and of 6 from step 20 on.
v1::RunRecord Record() {
  v1::RunRecord record;
  record.mutable_config()->mutable_input()->set_batch_size(6);
  for (int64_t i = 0; i < 2; ++i) {
    v1::RunRecord::Change* const change = record.add_change();
    change->set_step(10 + 10 * i);
    change->set_count(1);
    change->mutable_replaced()->set_batch_size(4 + i);
  }
  return record;
}

TEST(RecordedSettingsTest, ChangesAreTakenBack) {
  const auto at = [](int64_t step) { return ConfigAtStep(Record(), step).value().input().batch_size(); };
  EXPECT_EQ(at(0), 4);
  EXPECT_EQ(at(9), 4);
  EXPECT_EQ(at(10), 5);
  EXPECT_EQ(at(19), 5);
  EXPECT_EQ(at(20), 6);
  const auto after = [](int64_t count) { return ConfigAfterChanges(Record(), count).value().input().batch_size(); };
  EXPECT_EQ(after(0), 4);
  EXPECT_EQ(after(1), 5);
  EXPECT_EQ(after(2), 6);
}

TEST(RecordedSettingsTest, MergedChangesAreAnError) {
  v1::RunRecord record = Record();
  record.mutable_change(0)->set_count(3);
  EXPECT_EQ(ConfigAtStep(record, 10)->input().batch_size(), 5);
  EXPECT_TRUE(absl::IsFailedPrecondition(ConfigAtStep(record, 9).status()));
  EXPECT_EQ(ConfigAfterChanges(record, 3)->input().batch_size(), 5);
  EXPECT_TRUE(absl::IsFailedPrecondition(ConfigAfterChanges(record, 2).status()));
}

}  // namespace
}  // namespace lockstep
