#include "lockstep/common/transport/connection/connect_limit.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ConnectLimitTest, GrowsWhileAttemptsTakeAllTheirTime) {
  ConnectLimit limit(absl::Seconds(1), absl::Seconds(20));
  EXPECT_EQ(limit.connect(), absl::Milliseconds(500));
  EXPECT_FALSE(limit.has_grown());
  for (const int seconds : {1, 2, 4, 8, 16, 20, 20}) {
    EXPECT_EQ(limit.attempt(), absl::Seconds(seconds));
    limit.OnFailure(limit.connect());
  }
  EXPECT_TRUE(limit.has_grown());
}

TEST(ConnectLimitTest, AQuickRefusalChangesNothing) {
  ConnectLimit limit(absl::Seconds(1), absl::Seconds(20));
  for (int i = 0; i < 100; ++i) limit.OnFailure(absl::Milliseconds(499));
  EXPECT_EQ(limit.attempt(), absl::Seconds(1));
}

TEST(ConnectLimitTest, AnAnswerSaysHowLongTheNextMayTake) {
  ConnectLimit limit(absl::Seconds(1), absl::Seconds(20));
  limit.OnAnswer(absl::Seconds(4));
  EXPECT_EQ(limit.attempt(), absl::Seconds(8));
  limit.OnAnswer(absl::Milliseconds(1));
  EXPECT_EQ(limit.attempt(), absl::Seconds(1)) << "a chief that is near again";
  EXPECT_FALSE(limit.has_grown());
  limit.OnAnswer(absl::Minutes(1));
  EXPECT_EQ(limit.attempt(), absl::Seconds(20));
}

}  // namespace
}  // namespace lockstep
