#include "lockstep/common/base/mutex.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(MutexTest, OneThreadAtATimeHoldsIt) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10000; ++j) {
        MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40000);
}

TEST(CondVarTest, ASignalEndsAWaitWithTheMutexHeld) {
  Mutex mutex;
  CondVar changed;
  bool ready = false, seen = false;
  std::thread waiter([&] {
    MutexLock lock(&mutex);
    while (!ready) changed.Wait(&mutex);
    seen = true;
  });
  {
    MutexLock lock(&mutex);
    ready = true;
    changed.Signal();
  }
  waiter.join();
  EXPECT_TRUE(seen);
}

TEST(CondVarTest, SignalAllWakesEveryWaiter) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  int awake = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] {
      MutexLock lock(&mutex);
      while (!ready) changed.Wait(&mutex);
      ++awake;
    });
  }
  {
    MutexLock lock(&mutex);
    ready = true;
    changed.SignalAll();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(awake, 5);
}

TEST(CondVarTest, ATimeoutThatHasPassedEndsTheWait) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  // A spurious wakeup may come first.
  while (!never.WaitWithTimeout(&mutex, absl::ZeroDuration())) {
  }
  while (!never.WaitWithTimeout(&mutex, -absl::Hours(1))) {
  }
  while (!never.WaitWithTimeout(&mutex, -absl::InfiniteDuration())) {
  }
}

TEST(CondVarTest, AnInfiniteTimeoutWaitsForTheSignal) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread waiter([&] {
    MutexLock lock(&mutex);
    while (!ready) EXPECT_FALSE(changed.WaitWithTimeout(&mutex, absl::InfiniteDuration()));
  });
  {
    MutexLock lock(&mutex);
    ready = true;
    changed.SignalAll();
  }
  waiter.join();
}

}  // namespace
}  // namespace lockstep
