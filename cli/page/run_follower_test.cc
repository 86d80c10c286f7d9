#include "lockstep/cli/page/run_follower.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

// Counts the replies taken from all feeds. A follower that reads again has taken the previous reply. Thread-safe.
class Taken {
 public:
  void Add() {
    MutexLock lock(&mutex_);
    ++count_;
    changed_.SignalAll();
  }
  void Await(int count) {
    MutexLock lock(&mutex_);
    while (count_ < count) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A chief that sends one reply, or none, and then disappears or stays silent.
class FakeFeed : public RunFeed {
 public:
  FakeFeed(bool stays, Taken* taken, bool sends = true) : stays_(stays), taken_(taken), sent_(!sends) {}

  absl::Status Read(v1::WatchRunReply* reply) override {
    MutexLock lock(&mutex_);
    if (!sent_) {
      sent_ = true;
      reply->mutable_status()->set_global_step(7);
      reply->mutable_status()->set_generation(1);
      return absl::OkStatus();
    }
    taken_->Add();
    while (stays_ && !cancelled_) changed_.Wait(&mutex_);
    return cancelled_ ? absl::CancelledError("cancelled") : absl::UnavailableError("connection refused");
  }
  void Cancel() override {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    changed_.SignalAll();
  }

 private:
  const bool stays_;
  Taken* const taken_;
  Mutex mutex_;
  CondVar changed_;
  bool sent_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

class RunFollowerTest : public ::testing::Test {
 protected:
  RunFollower::Options NewOptions(const std::string& master) {
    RunFollower::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.view = &view_;
    options.master = ParseMasterAddress(master).value();
    return options;
  }

  SimulatedClock clock_;
  MemoryFileSystem fs_;
  RunView view_{&clock_, "grpc://host:1"};
};

TEST_F(RunFollowerTest, LooksForAChiefThatIsGone) {
  Taken taken;
  std::atomic<int> calls{0};
  RunFollower::Options options = NewOptions("grpc://host:1");
  options.watch = [&](const std::string& target) {
    EXPECT_EQ(target, "host:1");
    return std::make_unique<FakeFeed>(/*stays=*/++calls > 1, &taken);
  };
  RunFollower follower(std::move(options));
  clock_.AwaitWaiters(2);  // the follower and its task
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(view_.facts().answers);
  EXPECT_EQ(view_.facts().last->status().global_step(), 7);
  clock_.Advance(absl::Milliseconds(500));
  taken.Await(2);
  EXPECT_TRUE(view_.facts().answers);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(view_.facts().absent, absl::Milliseconds(500));
}

// The process of the first chief is frozen, and its standby leads.
TEST_F(RunFollowerTest, LeavesASilentChief) {
  Taken taken;
  std::atomic<int> calls{0};
  RunFollower::Options options = NewOptions("grpc://host:1,grpc://standby:2");
  options.watch = [&](const std::string& target) -> std::unique_ptr<RunFeed> {
    EXPECT_EQ(target, ++calls == 3 ? "standby:2" : "host:1");
    return std::make_unique<FakeFeed>(/*stays=*/true, &taken, /*sends=*/calls != 2);
  };
  RunFollower follower(std::move(options));
  taken.Await(1);
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(4));
  clock_.AwaitWaiters(1);
  EXPECT_TRUE(view_.facts().answers);
  clock_.Advance(absl::Seconds(1));
  clock_.AwaitWaiters(2);  // the follower waits before it looks again
  EXPECT_FALSE(view_.facts().answers);
  EXPECT_EQ(view_.facts().absent, absl::Seconds(5)) << "since the last reply";
  EXPECT_NE(view_.StateJson({})->find("it has sent nothing for 5s"), std::string::npos);
  clock_.Advance(absl::Milliseconds(500));
  taken.Await(2);  // the frozen chief accepts the call and sends nothing
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(5.5));
  taken.Await(3);
  EXPECT_TRUE(view_.facts().answers);
  EXPECT_EQ(calls, 3);
}

TEST_F(RunFollowerTest, AnAddressFileSaysThatTheRunIsOver) {
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/address", "finished\n").ok());
  RunFollower::Options options = NewOptions("file:/address");
  options.watch = [](const std::string&) -> std::unique_ptr<RunFeed> { return nullptr; };
  const RunFollower follower(std::move(options));
  clock_.AwaitWaiters(2);
  EXPECT_NE(view_.StateJson({})->find("\"over\":true"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
