#include "lockstep/common/base/testing/simulated_clock.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(SimulatedClockTest, MovesOnlyByAdvance) {
  SimulatedClock clock;
  const absl::Time start = clock.Now();
  EXPECT_EQ(start, absl::FromCivil(absl::CivilSecond(2020, 1, 1), absl::UTCTimeZone()));
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Seconds(90));
  EXPECT_EQ(clock.Now(), start + absl::Seconds(90));
}

TEST(SimulatedClockTest, ADeadlineThatHasComeIsNotWaitedFor) {
  SimulatedClock clock;
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  EXPECT_TRUE(clock.WaitUntil(&never, &mutex, clock.Now()));
  EXPECT_TRUE(clock.WaitUntil(&never, &mutex, absl::InfinitePast()));
}

TEST(SimulatedClockTest, ASleeperWakesExactlyAtItsTime) {
  SimulatedClock clock;
  const absl::Time start = clock.Now();
  absl::Time woke;
  std::thread sleeper([&] {
    clock.Sleep(absl::Seconds(10));
    woke = clock.Now();
  });
  clock.AwaitWaiters(1);
  clock.Advance(absl::Seconds(9));
  clock.AwaitWaiters(1);  // still waiting
  clock.Advance(absl::Seconds(1));
  sleeper.join();
  EXPECT_EQ(woke, start + absl::Seconds(10));
}

TEST(SimulatedClockTest, ASignalEndsAWaitBeforeItsDeadline) {
  SimulatedClock clock;
  Mutex mutex;
  CondVar changed;
  bool ready = false, timed_out = true;
  std::thread waiter([&] {
    MutexLock lock(&mutex);
    while (!ready) timed_out = clock.WaitUntil(&changed, &mutex, clock.Now() + absl::Seconds(10));
  });
  clock.AwaitWaiters(1);
  {
    MutexLock lock(&mutex);
    ready = true;
    changed.SignalAll();
  }
  waiter.join();
  EXPECT_FALSE(timed_out);
}

TEST(SimulatedClockTest, WaitersPastTheirDeadlineDoNotCount) {
  SimulatedClock clock;
  Mutex mutex;
  CondVar changed;
  int rounds = 0;
  std::thread waiter([&] {
    MutexLock lock(&mutex);
    for (; rounds < 100; ++rounds) {
      const absl::Time deadline = clock.Now() + absl::Seconds(1);
      while (!clock.WaitUntil(&changed, &mutex, deadline)) {
      }
    }
  });
  // If AwaitWaiters also counted waiters that have yet to wake, Advance would be too early for the next round.
  for (int i = 0; i < 100; ++i) {
    clock.AwaitWaiters(1);
    clock.Advance(absl::Seconds(1));
  }
  waiter.join();
  EXPECT_EQ(rounds, 100);
}

TEST(SimulatedClockTest, OneAdvanceWakesAllThatAreDue) {
  SimulatedClock clock;
  std::vector<std::thread> sleepers;
  for (int i = 1; i <= 5; ++i) sleepers.emplace_back([&clock, i] { clock.Sleep(absl::Seconds(i)); });
  clock.AwaitWaiters(5);
  clock.Advance(absl::Seconds(3));
  for (int i = 0; i < 3; ++i) sleepers[i].join();
  clock.AwaitWaiters(2);
  clock.Advance(absl::Hours(1));
  for (int i = 3; i < 5; ++i) sleepers[i].join();
}

TEST(SimulatedClockTest, ASleeperMayLeaveBeforeTheNextAdvance) {
  SimulatedClock clock;
  std::atomic<bool> done{false};
  std::thread sleeper([&] {
    for (int i = 0; i < 1000; ++i) clock.Sleep(absl::Milliseconds(1));
    done = true;
  });
  while (!done) clock.Advance(absl::Milliseconds(1));
  sleeper.join();
  EXPECT_GE(clock.Now(), SimulatedClock().Now() + absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep
