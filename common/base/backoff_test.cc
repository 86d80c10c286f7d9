#include "lockstep/common/base/backoff.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

std::vector<absl::Duration> Delays(const Backoff::Options& options, uint64_t seed, int count) {
  Backoff backoff(options, seed);
  std::vector<absl::Duration> delays;
  for (int i = 0; i < count; ++i) delays.push_back(backoff.Next());
  return delays;
}

TEST(BackoffTest, GrowsByTheFactorUpToTheLimit) {
  const Backoff::Options options{absl::Milliseconds(100), absl::Seconds(1), 3, 0};
  EXPECT_THAT(Delays(options, 1, 5), ElementsAre(absl::Milliseconds(100), absl::Milliseconds(300),
                                                 absl::Milliseconds(900), absl::Seconds(1), absl::Seconds(1)));
}

TEST(BackoffTest, TheFirstDelayIsNotAboveTheLimit) {
  EXPECT_THAT(Delays({absl::Seconds(5), absl::Seconds(1), 2, 0}, 1, 2),
              ElementsAre(absl::Seconds(1), absl::Seconds(1)));
}

TEST(BackoffTest, JitterOnlyShortens) {
  const Backoff::Options options{absl::Seconds(1), absl::Seconds(1), 2, 0.25};
  absl::Duration least = absl::Seconds(1), most = absl::ZeroDuration();
  for (const absl::Duration delay : Delays(options, 7, 1000)) {
    EXPECT_GT(delay, absl::Milliseconds(750));
    EXPECT_LE(delay, absl::Seconds(1));
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  EXPECT_LT(least, absl::Milliseconds(760));
  EXPECT_GT(most, absl::Milliseconds(990));
}

TEST(BackoffTest, TheSeedFixesTheDelays) {
  const Backoff::Options options;
  EXPECT_EQ(Delays(options, 1, 20), Delays(options, 1, 20));
  EXPECT_NE(Delays(options, 1, 20), Delays(options, 2, 20));
}

TEST(BackoffTest, ResetStartsAgain) {
  Backoff backoff({absl::Seconds(1), absl::Seconds(60), 2, 0}, 1);
  backoff.Next();
  backoff.Next();
  EXPECT_EQ(backoff.Next(), absl::Seconds(4));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep
