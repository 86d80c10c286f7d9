#include "lockstep/server/rpc/call/leader_follower_pool.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/server/rpc/call/completion_tag.h"

namespace lockstep {
namespace {

// An event that is due immediately and calls a function.
class AlarmEvent final : public CompletionTag {
 public:
  AlarmEvent(bool is_long, std::function<void()> handle) : is_long_(is_long), handle_(std::move(handle)) {}
  void Set(grpc::CompletionQueue* queue) { alarm_.Set(queue, std::chrono::system_clock::now(), this); }
  void OnEvent(bool ok) override {
    EXPECT_TRUE(ok);
    handle_();
  }
  bool IsLong() const override { return is_long_; }

 private:
  const bool is_long_;
  const std::function<void()> handle_;
  grpc::Alarm alarm_;
};

class Counter {
 public:
  void Increment() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++count_;
    changed_.SignalAll();
  }
  void Await(int count) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (count_ < count) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

class LeaderFollowerPoolTest : public ::testing::Test {
 protected:
  void Add(bool is_long, std::function<void()> handle) {
    events_.push_back(std::make_unique<AlarmEvent>(is_long, std::move(handle)));
    events_.back()->Set(&queue_);
  }
  // Waits until the added events have been handled, then ends the threads.
  void End(std::unique_ptr<LeaderFollowerPool> threads) {
    handled_.Await(static_cast<int>(events_.size()));
    queue_.Shutdown();
    threads.reset();
  }

  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<AlarmEvent>> events_;
  Counter handled_;
};

TEST_F(LeaderFollowerPoolTest, EveryEventIsHandled) {
  for (int i = 0; i < 100; ++i) Add(i % 3 == 0, [this] { handled_.Increment(); });
  End(std::make_unique<LeaderFollowerPool>(&queue_, 3));
}

TEST_F(LeaderFollowerPoolTest, TheLeaderHandlesShortEventsAlone) {
  std::atomic<int> inside(0);
  for (int i = 0; i < 100; ++i) {
    Add(/*is_long=*/false, [&] {
      EXPECT_EQ(++inside, 1);
      --inside;
      handled_.Increment();
    });
  }
  End(std::make_unique<LeaderFollowerPool>(&queue_, 3));
}

TEST_F(LeaderFollowerPoolTest, AFollowerLeadsDuringALongEvent) {
  Counter shorts;
  auto threads = std::make_unique<LeaderFollowerPool>(&queue_, 2);
  Add(/*is_long=*/true, [&] {
    shorts.Await(2);
    handled_.Increment();
  });
  for (int i = 0; i < 2; ++i) {
    Add(/*is_long=*/false, [&] {
      shorts.Increment();
      handled_.Increment();
    });
  }
  End(std::move(threads));
}

TEST_F(LeaderFollowerPoolTest, ThreadsHandleLongEventsInParallel) {
  Counter inside;
  auto threads = std::make_unique<LeaderFollowerPool>(&queue_, 3);
  for (int i = 0; i < 3; ++i) {
    Add(/*is_long=*/true, [&] {
      inside.Increment();
      inside.Await(3);
      handled_.Increment();
    });
  }
  End(std::move(threads));
}

TEST_F(LeaderFollowerPoolTest, OneThreadHandlesEverythingInTurn) {
  auto threads = std::make_unique<LeaderFollowerPool>(&queue_, 0);
  for (int i = 0; i < 10; ++i) Add(i % 2 == 0, [this] { handled_.Increment(); });
  End(std::move(threads));
}

TEST_F(LeaderFollowerPoolTest, AnEmptyQueueThatIsShutDownEndsThem) {
  LeaderFollowerPool threads(&queue_, 2);
  queue_.Shutdown();
}

}  // namespace
}  // namespace lockstep
