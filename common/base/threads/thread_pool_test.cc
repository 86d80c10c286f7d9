#include "lockstep/common/base/threads/thread_pool.h"

#include <atomic>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/limited_threads.h"

namespace lockstep {
namespace {

TEST(ThreadPoolTest, RunsEveryClosureBeforeItEnds) {
  std::atomic<int> count{0};
  {
    ThreadPool pool(3);
    EXPECT_EQ(pool.size(), 3);
    for (int i = 0; i < 1000; ++i) pool.Schedule([&] { ++count; });
  }
  EXPECT_EQ(count, 1000);
}

TEST(ThreadPoolTest, HasOneThreadAtLeast) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.size(), 1);
}

TEST(ThreadPoolTest, MakesDoWithTheThreadsThatThereAre) {
  LimitedThreads two(2), none(0);
  const auto pool = ThreadPool::Try(3, &two);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->size(), 2);
  std::atomic<int> count{0};
  pool->ParallelFor(100, [&](int64_t) { ++count; });
  EXPECT_EQ(count, 100);
  EXPECT_EQ(ThreadPool::Try(3, &none), nullptr);
}

TEST(ThreadPoolTest, OneThreadRunsClosuresInOrder) {
  std::vector<int> order;
  {
    ThreadPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Schedule([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(ThreadPoolTest, TakesClosuresThatCannotBeCopied) {
  std::atomic<int> value{0};
  {
    ThreadPool pool(1);
    auto number = std::make_unique<int>(7);
    pool.Schedule([&value, number = std::move(number)] { value = *number; });
  }
  EXPECT_EQ(value, 7);
}

TEST(ThreadPoolTest, AClosureMayScheduleAnother) {
  std::atomic<int> count{0};
  {
    ThreadPool pool(2);
    pool.Schedule([&] {
      ++count;
      pool.Schedule([&] { ++count; });
    });
  }
  EXPECT_EQ(count, 2);
}

TEST(ThreadPoolTest, ParallelForCallsEveryIndexOnce) {
  ThreadPool pool(4);
  for (const int64_t n : {0, 1, 2, 7, 1000}) {
    std::vector<int> calls(n);  // each element has one writer
    pool.ParallelFor(n, [&](int64_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(n, 1));
  }
}

TEST(ThreadPoolTest, ParallelForUsesSeveralThreads) {
  ThreadPool pool(3);
  // Each call waits for all others, so the calls return only if four threads run at the same time.
  Mutex mutex;
  CondVar changed;
  int present = 0;
  pool.ParallelFor(4, [&](int64_t) {
    MutexLock lock(&mutex);
    ++present;
    changed.SignalAll();
    while (present < 4) changed.Wait(&mutex);
  });
  EXPECT_EQ(present, 4);
}

TEST(ThreadPoolTest, ParallelForWorksInsideOfItself) {
  ThreadPool pool(2);
  std::atomic<int> count{0};
  pool.ParallelFor(8, [&](int64_t) { pool.ParallelFor(8, [&](int64_t) { ++count; }); });
  EXPECT_EQ(count, 64);
}

TEST(ThreadPoolTest, ParallelForWorksWhileThePoolIsBusy) {
  Mutex mutex;
  CondVar changed;
  bool release = false;
  std::atomic<int> count{0};
  ThreadPool pool(1);
  pool.Schedule([&] {
    MutexLock lock(&mutex);
    while (!release) changed.Wait(&mutex);
  });
  pool.ParallelFor(10, [&](int64_t) { ++count; });
  EXPECT_EQ(count, 10);
  MutexLock lock(&mutex);
  release = true;
  changed.SignalAll();
}

}  // namespace
}  // namespace lockstep
