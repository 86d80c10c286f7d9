#include "lockstep/train/supervisor/coordinator.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class CoordinatorTest : public ::testing::Test {
 protected:
  Coordinator::Options Options() {
    Coordinator::Options options;
    options.clock = &clock_;
    return options;
  }

  // Starts a thread that ends when the clock has advanced by `duration`.
  void StartSleeper(Coordinator* coordinator, const std::string& name, absl::Duration duration) {
    coordinator->StartThread(name, [this, duration] {
      clock_.Sleep(duration);
      return absl::OkStatus();
    });
  }

  // Joins in another thread while the clock advances by the grace period.
  absl::Status JoinWhileTimePasses(Coordinator* coordinator, Coordinator::JoinOptions options, int sleepers) {
    absl::Status status;
    std::thread joiner([&] { status = coordinator->Join(options); });
    clock_.AwaitWaiters(sleepers + 1);
    clock_.Advance(options.grace);
    joiner.join();
    return status;
  }

  SimulatedClock clock_;
};

TEST_F(CoordinatorTest, NothingIsRequestedAtFirst) {
  Coordinator coordinator(Options());
  EXPECT_FALSE(coordinator.ShouldStop());
  EXPECT_TRUE(coordinator.status().ok());
  EXPECT_FALSE(coordinator.WaitForStop(absl::ZeroDuration()));
}

TEST_F(CoordinatorTest, WaitForStopEndsWithTheRequest) {
  Coordinator coordinator(Options());
  std::thread waiter([&] { EXPECT_TRUE(coordinator.WaitForStop()); });
  clock_.AwaitWaiters(1);
  EXPECT_TRUE(coordinator.RequestStop().ok());
  waiter.join();
  EXPECT_TRUE(coordinator.ShouldStop());
}

TEST_F(CoordinatorTest, WaitForStopEndsWithItsTimeout) {
  Coordinator coordinator(Options());
  std::thread waiter([&] { EXPECT_FALSE(coordinator.WaitForStop(absl::Seconds(3))); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(3));
  waiter.join();
}

// COORD-02
TEST_F(CoordinatorTest, JoinWaitsForEveryThread) {
  Coordinator coordinator(Options());
  std::atomic<int> ended{0};
  for (const int ms : {10, 15, 20}) {
    coordinator.StartThread("sleeper", [&, ms] {
      clock_.Sleep(absl::Milliseconds(ms));
      ++ended;
      return absl::OkStatus();
    });
  }
  std::thread joiner([&] {
    EXPECT_TRUE(coordinator.Join().ok());
    EXPECT_EQ(ended, 3);
  });
  clock_.AwaitWaiters(3);
  clock_.Advance(absl::Milliseconds(20));
  joiner.join();
  EXPECT_FALSE(coordinator.ShouldStop());
}

// COORD-03
TEST_F(CoordinatorTest, JoinReportsThreadsThatOutliveTheGrace) {
  for (const absl::Duration grace : {absl::Nanoseconds(1), absl::Milliseconds(2), absl::Seconds(1)}) {
    Coordinator coordinator(Options());
    StartSleeper(&coordinator, "slow", absl::Seconds(10));
    coordinator.StartThread("quick", [] { return absl::OkStatus(); });
    coordinator.RequestStop().IgnoreError();
    const absl::Status status = JoinWhileTimePasses(&coordinator, {grace, false}, 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()), HasSubstr("threads still running"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(": slow"));
    // The destructor waits for the thread.
    clock_.Advance(absl::Seconds(10));
  }
}

// COORD-04
TEST_F(CoordinatorTest, JoinMayIgnoreThreadsThatOutliveTheGrace) {
  Coordinator coordinator(Options());
  StartSleeper(&coordinator, "slow", absl::Seconds(10));
  coordinator.RequestStop().IgnoreError();
  const absl::Time start = clock_.Now();
  EXPECT_TRUE(JoinWhileTimePasses(&coordinator, {absl::Seconds(1), true}, 1).ok());
  EXPECT_EQ(clock_.Now() - start, absl::Seconds(1));
  clock_.Advance(absl::Seconds(10));
}

TEST_F(CoordinatorTest, JoinEndsWithTheLastThreadInTheGrace) {
  Coordinator coordinator(Options());
  StartSleeper(&coordinator, "a", absl::Seconds(5));
  coordinator.RequestStop().IgnoreError();
  std::thread joiner([&] { EXPECT_TRUE(coordinator.Join().ok()); });
  clock_.AwaitWaiters(2);
  clock_.Advance(absl::Seconds(5));
  joiner.join();
}

// COORD-05
TEST_F(CoordinatorTest, JoinReturnsTheFirstError) {
  Coordinator coordinator(Options());
  coordinator.StartThread("first", [] { return absl::InternalError("First"); });
  EXPECT_TRUE(coordinator.WaitForStop());
  coordinator.StartThread("second", [] { return absl::InternalError("Too late"); });
  EXPECT_EQ(coordinator.Join(), absl::InternalError("First"));
  EXPECT_EQ(coordinator.status(), absl::InternalError("First"));
}

TEST_F(CoordinatorTest, AnErrorComesBeforeThreadsThatStillRun) {
  Coordinator coordinator(Options());
  StartSleeper(&coordinator, "slow", absl::Seconds(10));
  coordinator.RequestStop(absl::InternalError("broken")).IgnoreError();
  EXPECT_EQ(JoinWhileTimePasses(&coordinator, {absl::Seconds(1), false}, 1), absl::InternalError("broken"));
  clock_.Advance(absl::Seconds(10));
}

// COORD-06
TEST_F(CoordinatorTest, OutOfRangeIsACleanEnd) {
  Coordinator coordinator(Options());
  coordinator.StartThread("reader", [] { return absl::OutOfRangeError("input exhausted"); });
  EXPECT_TRUE(coordinator.WaitForStop());
  EXPECT_TRUE(coordinator.Join().ok());
}

// COORD-07
TEST_F(CoordinatorTest, ExceptionOfAThreadIsItsError) {
  Coordinator coordinator(Options());
  coordinator.StartThread("stod", []() -> absl::Status { throw std::invalid_argument("stod"); });
  EXPECT_EQ(coordinator.Join(), absl::InternalError("exception: stod"));
}

TEST_F(CoordinatorTest, TheCodesOfACleanEndCanBeChosen) {
  Coordinator::Options options = Options();
  options.clean_stop_codes = {absl::StatusCode::kInvalidArgument};
  Coordinator coordinator(options);
  coordinator.StartThread("a", [] { return absl::InvalidArgumentError("clean here"); });
  EXPECT_TRUE(coordinator.WaitForStop());
  EXPECT_TRUE(coordinator.Join().ok());
  coordinator.ClearStop();
  coordinator.StartThread("a", [] { return absl::OutOfRangeError("an error here"); });
  EXPECT_EQ(coordinator.Join(), absl::OutOfRangeError("an error here"));
}

// COORD-09
TEST_F(CoordinatorTest, ClearStopForgetsTheError) {
  Coordinator coordinator(Options());
  coordinator.StartThread("a", [] { return absl::InternalError("First"); });
  EXPECT_EQ(coordinator.Join(), absl::InternalError("First"));
  coordinator.ClearStop();
  EXPECT_FALSE(coordinator.ShouldStop());
  coordinator.StartThread("b", [] { return absl::InternalError("Second"); });
  EXPECT_EQ(coordinator.Join(), absl::InternalError("Second"));
}

// COORD-10
TEST_F(CoordinatorTest, AnErrorAfterJoinGoesToWhoeverReportsIt) {
  Coordinator coordinator(Options());
  coordinator.RequestStop().IgnoreError();
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_EQ(coordinator.RequestStop(absl::InternalError("Too late")), absl::InternalError("Too late"));
  EXPECT_TRUE(coordinator.RequestStop(absl::OutOfRangeError("clean")).ok());
}

// COORD-14
TEST_F(CoordinatorTest, ALoopWithoutAFunctionIsRefused) {
  Coordinator coordinator(Options());
  const absl::Status status = coordinator.StartLoop("empty", Coordinator::Loop());
  EXPECT_EQ(status, absl::InvalidArgumentError("loop \"empty\" has no function to run"));
}

// The original drops the error (F-17).
TEST_F(CoordinatorTest, AnErrorAfterACleanRequestIsKept) {
  Coordinator coordinator(Options());
  coordinator.RequestStop().IgnoreError();
  coordinator.StartThread("checkpoint_writer", [] { return absl::DataLossError("disk full"); });
  EXPECT_EQ(coordinator.Join(), absl::DataLossError("disk full"));
}

TEST_F(CoordinatorTest, CancelledAfterARequestIsNoError) {
  Coordinator coordinator(Options());
  coordinator.RequestStop().IgnoreError();
  coordinator.StartThread("call", [] { return absl::CancelledError("the stop cancelled it"); });
  EXPECT_TRUE(coordinator.Join().ok());
  coordinator.ClearStop();
  coordinator.StartThread("call", [] { return absl::CancelledError("nobody asked for it"); });
  EXPECT_TRUE(coordinator.WaitForStop());
  EXPECT_TRUE(absl::IsCancelled(coordinator.Join()));
}

TEST_F(CoordinatorTest, ALoopRunsAtOnceAndThenOnAFixedSchedule) {
  Coordinator coordinator(Options());
  std::vector<absl::Duration> calls;  // written only by the loop's thread until Join
  const absl::Time start = clock_.Now();
  Coordinator::Loop loop;
  loop.period = absl::Seconds(2);
  loop.run = [&] {
    calls.push_back(clock_.Now() - start);
    return absl::OkStatus();
  };
  ASSERT_TRUE(coordinator.StartLoop("timer", loop).ok());
  for (int i = 0; i < 3; ++i) {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(2));
  }
  clock_.AwaitWaiters(1);
  coordinator.RequestStop().IgnoreError();
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_THAT(calls,
              ::testing::ElementsAre(absl::ZeroDuration(), absl::Seconds(2), absl::Seconds(4), absl::Seconds(6)));
}

// SUP-33
TEST_F(CoordinatorTest, LateLoopCatchesUp) {
  Coordinator coordinator(Options());
  std::vector<absl::Duration> calls;  // written only by the loop's thread until Join
  const absl::Time start = clock_.Now();
  Coordinator::Loop loop;
  loop.period = absl::Seconds(2);
  loop.run = [&] {
    calls.push_back(clock_.Now() - start);
    if (calls.size() == 1) clock_.Advance(absl::Seconds(5));
    return calls.size() < 4 ? absl::OkStatus() : coordinator.RequestStop();
  };
  ASSERT_TRUE(coordinator.StartLoop("slow", loop).ok());
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_THAT(calls,
              ::testing::ElementsAre(absl::ZeroDuration(), absl::Seconds(5), absl::Seconds(5), absl::Seconds(6)));
}

TEST_F(CoordinatorTest, ALoopWithoutPeriodRunsBackToBack) {
  Coordinator coordinator(Options());
  std::string order;
  Coordinator::Loop loop;
  loop.start = [&] { return order += "start ", absl::OkStatus(); };
  loop.stop = [&] { return order += "stop", absl::OkStatus(); };
  loop.run = [&] {
    order += "run ";
    return order.size() < 12 ? absl::OkStatus() : coordinator.RequestStop();
  };
  ASSERT_TRUE(coordinator.StartLoop("busy", loop).ok());
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_EQ(order, "start run run stop");
}

TEST_F(CoordinatorTest, ALoopThatFailsSkipsItsStopHook) {
  Coordinator coordinator(Options());
  bool stopped = false;
  Coordinator::Loop loop;
  loop.run = [] { return absl::InternalError("broken"); };
  loop.stop = [&] { return stopped = true, absl::OkStatus(); };
  ASSERT_TRUE(coordinator.StartLoop("timer", loop).ok());
  EXPECT_EQ(coordinator.Join(), absl::InternalError("broken"));
  EXPECT_FALSE(stopped);
}

TEST_F(CoordinatorTest, ItsDestructorStopsAndWaits) {
  std::atomic<bool> ended{false};
  {
    Coordinator coordinator(Options());
    coordinator.StartThread("waiter", [&] {
      coordinator.WaitForStop();
      ended = true;
      return absl::OkStatus();
    });
  }
  EXPECT_TRUE(ended);
}

TEST_F(CoordinatorTest, SaysOnceThatAStopIsRequested) {
  Coordinator coordinator(Options());
  int calls = 0;
  coordinator.OnStop([&] {
    ++calls;
    EXPECT_TRUE(coordinator.ShouldStop()) << "no lock is held";
  });
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(coordinator.RequestStop().ok());
  EXPECT_TRUE(coordinator.RequestStop().ok());
  EXPECT_EQ(calls, 1);
  coordinator.OnStop([&] { ++calls; });
  EXPECT_EQ(calls, 2) << "it is requested already";
  coordinator.ClearStop();
  coordinator.OnStop([&] { ++calls; });
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(coordinator.RequestStop().ok());
  EXPECT_EQ(calls, 3);
}

TEST_F(CoordinatorTest, ManyThreadsFailAndOneErrorWins) {
  for (int round = 0; round < 20; ++round) {
    Coordinator coordinator(Options());
    for (int i = 0; i < 8; ++i) {
      coordinator.StartThread("t", [i] { return absl::InternalError(std::to_string(i)); });
    }
    const absl::Status status = coordinator.Join();
    EXPECT_TRUE(absl::IsInternal(status));
    EXPECT_EQ(status, coordinator.status());
  }
}

}  // namespace
}  // namespace lockstep
