#include "lockstep/common/base/threads/periodic_task.h"

#include <atomic>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class PeriodicTaskTest : public ::testing::Test {
 protected:
  PeriodicTask::Options Options(absl::Duration period) {
    PeriodicTask::Options options;
    options.clock = &clock_;
    options.period = period;
    return options;
  }

  // Waits until the task is waiting for its next call, and then advances the clock.
  void Advance(absl::Duration duration) {
    clock_.AwaitWaiters(1);
    clock_.Advance(duration);
  }

  void Record() { calls_.push_back(clock_.Now() - start_); }

  SimulatedClock clock_;
  const absl::Time start_ = clock_.Now();
  std::vector<absl::Duration> calls_;  // only the task's thread writes it until Stop
};

TEST_F(PeriodicTaskTest, CallsImmediatelyThenEveryPeriod) {
  PeriodicTask task(Options(absl::Seconds(2)), [this] { Record(); });
  Advance(absl::Seconds(2));
  Advance(absl::Seconds(1));
  Advance(absl::Seconds(1));
  clock_.AwaitWaiters(1);
  task.Stop();
  EXPECT_THAT(calls_, ElementsAre(absl::ZeroDuration(), absl::Seconds(2), absl::Seconds(4)));
}

TEST_F(PeriodicTaskTest, MayWaitAPeriodFirst) {
  PeriodicTask::Options options = Options(absl::Seconds(2));
  options.first_at_once = false;
  PeriodicTask task(options, [this] { Record(); });
  Advance(absl::Seconds(2));
  clock_.AwaitWaiters(1);
  task.Stop();
  EXPECT_THAT(calls_, ElementsAre(absl::Seconds(2)));
}

TEST_F(PeriodicTaskTest, ALateCallDoesNotDelayTheSchedule) {
  PeriodicTask task(Options(absl::Seconds(2)), [this] {
    Record();
    // The first call takes three seconds.
    if (calls_.size() == 1) clock_.Advance(absl::Seconds(3));
  });
  Advance(absl::Seconds(1));
  clock_.AwaitWaiters(1);
  task.Stop();
  EXPECT_THAT(calls_, ElementsAre(absl::ZeroDuration(), absl::Seconds(4)));
}

TEST_F(PeriodicTaskTest, SkipsTheCallsThatItMissed) {
  PeriodicTask task(Options(absl::Seconds(2)), [this] { Record(); });
  Advance(absl::Hours(8) + absl::Seconds(1));
  Advance(absl::Seconds(1));
  clock_.AwaitWaiters(1);
  task.Stop();
  EXPECT_THAT(calls_,
              ElementsAre(absl::ZeroDuration(), absl::Hours(8) + absl::Seconds(1), absl::Hours(8) + absl::Seconds(2)));
}

TEST_F(PeriodicTaskTest, DoesNotNoticeThatTheDateIsSet) {
  PeriodicTask task(Options(absl::Seconds(2)), [this] { Record(); });
  clock_.AwaitWaiters(1);
  clock_.SetWallClock(-absl::Hours(24));
  Advance(absl::Seconds(2));
  clock_.AwaitWaiters(1);
  clock_.SetWallClock(absl::Hours(48));
  Advance(absl::Seconds(2));
  clock_.AwaitWaiters(1);
  task.Stop();
  EXPECT_THAT(calls_, ElementsAre(absl::ZeroDuration(), absl::Seconds(2), absl::Seconds(4)));
}

TEST_F(PeriodicTaskTest, WithoutAPeriodTheOwnerCalls) {
  PeriodicTask task(Options(absl::ZeroDuration()), [this] { Record(); });
  clock_.Advance(absl::Hours(1));
  EXPECT_THAT(calls_, ElementsAre());
  task.RunOnce();
  EXPECT_THAT(calls_, ElementsAre(absl::Hours(1)));
  task.Stop();
}

TEST_F(PeriodicTaskTest, RunOnceNeverOverlapsTheThread) {
  std::atomic<int> inside{0};
  std::atomic<int> calls{0};
  PeriodicTask task(Options(absl::Seconds(1)), [&] {
    EXPECT_EQ(++inside, 1);
    ++calls;
    --inside;
  });
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(absl::Seconds(1));
    task.RunOnce();
  }
  task.Stop();
  EXPECT_GE(calls, 100);
}

TEST_F(PeriodicTaskTest, StopMayBeCalledAgain) {
  PeriodicTask task(Options(absl::Seconds(1)), [this] { Record(); });
  task.Stop();
  task.Stop();
  clock_.Advance(absl::Seconds(5));
  EXPECT_LE(calls_.size(), 1);
}

}  // namespace
}  // namespace lockstep
