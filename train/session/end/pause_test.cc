#include "lockstep/train/session/end/pause.h"

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep::train {
namespace {

TEST(PauseTest, LastsAsLongAsItIsTold) {
  SimulatedClock clock;
  absl::Status status = absl::InternalError("not ended");
  const auto thread = Executor::Threads()->Start("pause", [&] { status = Pause(absl::Seconds(5), &clock, nullptr); });
  clock.AwaitWaiters(1);
  clock.Advance(absl::Seconds(5));
  thread->Join();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(PauseTest, EndsWithTheStop) {
  SimulatedClock clock;
  StopSignal stop;
  absl::Status status;
  const auto thread = Executor::Threads()->Start("pause", [&] { status = Pause(absl::Hours(5), &clock, &stop); });
  clock.AwaitWaiters(1);
  stop.Request();
  thread->Join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(Pause(absl::Hours(5), &clock, &stop))) << "also one that was requested before";
}

}  // namespace
}  // namespace lockstep::train
