#include "lockstep/common/report/quantity.h"

#include <limits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(QuantityTest, ShowsThreeDigitsAndASuffix) {
  EXPECT_EQ(QuantityText(0), "0");
  EXPECT_EQ(QuantityText(0.42), "0.42");
  EXPECT_EQ(QuantityText(7.5), "7.5");
  EXPECT_EQ(QuantityText(9.996), "10");
  EXPECT_EQ(QuantityText(310.4), "310");
  EXPECT_EQ(QuantityText(999.6), "1k");
  EXPECT_EQ(QuantityText(39680), "39.7k");
  EXPECT_EQ(QuantityText(1.254e6), "1.25M");
  EXPECT_EQ(QuantityText(5e15), "5000T");
  EXPECT_EQ(QuantityText(-39680), "-39.7k");
  EXPECT_EQ(QuantityText(-0.001), "0");
  EXPECT_EQ(QuantityText(std::numeric_limits<double>::infinity()), "-");
}

TEST(QuantityTest, ShowsBytesInUnitsOfAThousand) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(512), "512 B");
  EXPECT_EQ(BytesText(2680000), "2.68 MB");
  EXPECT_EQ(BytesText(1100000000), "1.1 GB");
  EXPECT_EQ(BytesText(std::numeric_limits<int64_t>::max()), "9.22 EB");
  EXPECT_EQ(BytesText(-1), "0 B");
}

TEST(QuantityTest, ShowsMeasuredTimes) {
  EXPECT_EQ(MeasuredTimeText(absl::Microseconds(412)), "0.41 ms");
  EXPECT_EQ(MeasuredTimeText(absl::Milliseconds(12)), "12 ms");
  EXPECT_EQ(MeasuredTimeText(absl::Milliseconds(1300)), "1.3 s");
  EXPECT_EQ(MeasuredTimeText(absl::Minutes(100)), "6000 s");
  EXPECT_EQ(MeasuredTimeText(absl::ZeroDuration()), "-");
  EXPECT_EQ(MeasuredTimeText(absl::InfiniteDuration()), "-");
}

TEST(QuantityTest, ShowsRemainingTimes) {
  EXPECT_EQ(RemainingTimeText(absl::Milliseconds(8600)), "9s");
  EXPECT_EQ(RemainingTimeText(absl::Seconds(125)), "2m 05s");
  EXPECT_EQ(RemainingTimeText(absl::Hours(3) + absl::Minutes(12)), "3h 12m");
  EXPECT_EQ(RemainingTimeText(absl::Hours(51)), "2d 3h");
  EXPECT_EQ(RemainingTimeText(-absl::Seconds(1)), "0s");
  EXPECT_EQ(RemainingTimeText(absl::InfiniteDuration()), "-");
}

TEST(QuantityTest, CountsNouns) {
  EXPECT_EQ(CountText(1, "worker"), "1 worker");
  EXPECT_EQ(CountText(0, "worker"), "0 workers");
}

}  // namespace
}  // namespace lockstep
