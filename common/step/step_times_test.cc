#include "lockstep/common/step/step_times.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(StepTimesTest, ShortTimesAreExact) {
  const StepTimes times{absl::Microseconds(1), absl::Microseconds(2047), absl::ZeroDuration(), absl::Microseconds(7)};
  const StepTimes read = DecodeStepTimes(EncodeStepTimes(times));
  EXPECT_EQ(read.batch, times.batch);
  EXPECT_EQ(read.compute, times.compute);
  EXPECT_EQ(read.send, times.send);
  EXPECT_EQ(read.wait, times.wait);
}

TEST(StepTimesTest, LongTimesLoseLessThanAThousandth) {
  for (absl::Duration time = absl::Milliseconds(3); time < absl::Hours(1000); time *= 3) {
    const absl::Duration read = DecodeStepTimes(EncodeStepTimes({{}, time, {}, {}})).compute;
    EXPECT_LE(read, time);
    EXPECT_GE(read, time * 0.999) << time;
  }
}

TEST(StepTimesTest, TimesBeyondTheFormatAreTheLargest) {
  const StepTimes read = DecodeStepTimes(EncodeStepTimes({absl::InfiniteDuration(), absl::Seconds(-1), {}, {}}));
  EXPECT_GT(read.batch, absl::Hours(24));
  EXPECT_EQ(read.compute, absl::ZeroDuration());
}

}  // namespace
}  // namespace lockstep
