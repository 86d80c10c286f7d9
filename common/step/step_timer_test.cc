#include "lockstep/common/step/step_timer.h"

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

TEST(StepTimerTest, EachMomentBelongsToOnePhase) {
  SimulatedClock clock;
  StepTimer timer(&clock);
  clock.Advance(absl::Milliseconds(5));
  timer.Enter(StepTimer::Phase::kCompute);
  clock.Advance(absl::Milliseconds(7));
  {
    const StepTimer::Scope send(&timer, StepTimer::Phase::kSend);
    clock.Advance(absl::Milliseconds(2));
    const StepTimer::Scope batch(&timer, StepTimer::Phase::kBatch);
    clock.Advance(absl::Milliseconds(1));
  }
  clock.Advance(absl::Milliseconds(10));
  const StepTimes times = timer.Take();
  EXPECT_EQ(times.wait, absl::Milliseconds(5));
  EXPECT_EQ(times.compute, absl::Milliseconds(17));
  EXPECT_EQ(times.send, absl::Milliseconds(2));
  EXPECT_EQ(times.batch, absl::Milliseconds(1));
  EXPECT_EQ(timer.Take().compute, absl::ZeroDuration()) << "each time is taken once";
}

}  // namespace
}  // namespace lockstep
