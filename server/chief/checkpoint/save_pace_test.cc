#include "lockstep/server/chief/checkpoint/save_pace.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class SavePaceTest : public ::testing::Test {
 protected:
  const absl::Time begin_ = absl::FromUnixSeconds(1000);
};

TEST_F(SavePaceTest, SpreadsACheckpointEvenly) {
  const SavePace pace(begin_, 1024 * kMiB, absl::InfiniteDuration());
  EXPECT_EQ(pace.TurnOf(0), begin_);
  EXPECT_EQ(pace.TurnOf(32 * kMiB), begin_ + absl::Seconds(1));
  EXPECT_EQ(pace.TurnOf(1024 * kMiB), begin_ + absl::Seconds(32));
}

TEST_F(SavePaceTest, ManySmallVariablesAreOnePiece) {
  const SavePace pace(begin_, 1024 * kMiB, absl::InfiniteDuration());
  EXPECT_EQ(pace.TurnOf(kMiB - 1), begin_);
  EXPECT_GT(pace.TurnOf(kMiB), begin_);
  EXPECT_EQ(pace.TurnOf(2 * kMiB - 1), pace.TurnOf(kMiB));
}

TEST_F(SavePaceTest, IsDoneHalfWayToTheNextSnapshot) {
  const SavePace pace(begin_, 1024 * kMiB, absl::Seconds(16));
  EXPECT_EQ(pace.TurnOf(1024 * kMiB), begin_ + absl::Seconds(8));
}

TEST_F(SavePaceTest, DoesNotTakeLongerBecauseThereIsTime) {
  const SavePace pace(begin_, 1024 * kMiB, absl::Hours(1));
  EXPECT_EQ(pace.TurnOf(1024 * kMiB), begin_ + absl::Seconds(32));
}

TEST_F(SavePaceTest, WithoutTimeNothingWaits) {
  const SavePace pace(begin_, 1024 * kMiB, absl::ZeroDuration());
  EXPECT_EQ(pace.TurnOf(1024 * kMiB), begin_);
}

}  // namespace
}  // namespace lockstep
