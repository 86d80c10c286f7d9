#include "lockstep/train/hooks/global_step_waiter_hook.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

// A clock that jumps to the deadline instead of waiting.
class LeapingClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  absl::Time WallTime() override { return now_; }
  bool WaitUntil(CondVar*, Mutex*, absl::Time deadline) override {
    now_ = deadline;
    ++waits_;
    return true;
  }
  int waits() const { return waits_; }

 private:
  absl::Time now_ = absl::UnixEpoch();
  int waits_ = 0;
};

class GlobalStepWaiterHookTest : public ::testing::Test {
 protected:
  std::unique_ptr<GlobalStepWaiterHook> Make(int64_t step) {
    GlobalStepWaiterOptions options;
    options.wait_until_step = step;
    options.clock = &clock_;
    return *GlobalStepWaiterHook::Create(options);
  }

  static FakeSession::Options Worker() {
    FakeSession::Options options;
    options.chief = false;
    options.blocks.resize(3);
    return options;
  }

  LeapingClock clock_;
};

TEST_F(GlobalStepWaiterHookTest, WaitsForTheStepOnce) {
  const auto hook = Make(1000);
  HookedRun run({hook.get()}, Worker());
  run.base().set_polled_steps({0, 500, 1100});
  ASSERT_TRUE(run.Run().ok());
  EXPECT_EQ(clock_.waits(), 2);
  EXPECT_EQ(clock_.Now() - absl::UnixEpoch(), absl::Seconds(1));
  ASSERT_TRUE(run.Run().ok());
  EXPECT_EQ(clock_.waits(), 2);
}

TEST_F(GlobalStepWaiterHookTest, ForStepZeroThereIsNoWait) {
  const auto hook = Make(0);
  HookedRun run({hook.get()}, Worker());
  ASSERT_TRUE(run.Run().ok());
  EXPECT_EQ(clock_.waits(), 0);
}

TEST_F(GlobalStepWaiterHookTest, TheChiefDoesNotWaitForItself) {
  const auto hook = Make(1000);
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run().ok());
  EXPECT_EQ(clock_.waits(), 0);
}

TEST_F(GlobalStepWaiterHookTest, TheEndOfTheRunEndsTheWait) {
  const auto hook = Make(1000);
  HookedRun run({hook.get()}, Worker());
  ASSERT_TRUE(run.base().RequestStop("over").ok());
  ASSERT_TRUE(run.Run().ok());
  EXPECT_EQ(clock_.waits(), 0);
}

TEST_F(GlobalStepWaiterHookTest, AWrongIntervalIsNamed) {
  GlobalStepWaiterOptions options;
  options.poll_interval = absl::ZeroDuration();
  EXPECT_EQ(GlobalStepWaiterHook::Create(options).status(),
            absl::InvalidArgumentError("GlobalStepWaiterHook's poll_interval is 0 where more than 0 is expected"));
}

}  // namespace
}  // namespace lockstep::train
