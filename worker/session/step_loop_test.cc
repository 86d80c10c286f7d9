#include "lockstep/worker/session/step_loop.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/client/testing/fake_chief_client.h"
#include "lockstep/common/cluster/replaced_chief.h"
#include "lockstep/worker/session/testing/tiny_workload.h"

namespace lockstep {
namespace {

class StepLoopTest : public ::testing::Test {
 protected:
  // Runs the client's next stream.
  SessionEnd Run(Workload workload = TinyWorkload()) {
    const v1::ModelSpec model = workload.model->spec();
    auto computer = BlockComputer::Create(config::v1::RunSpec(), std::move(workload), &loop_.wanted(), &slots_);
    EXPECT_TRUE(computer.ok()) << computer.status();
    return loop_.Run(client_.OpenStepChannel({}, model).value(), computer->get());
  }

  StepLoop::Options NewOptions() {
    StepLoop::Options options;
    options.on_progress = [this] { ++progress_; };
    options.on_step = [this](int64_t step) { step_ = step; };
    return options;
  }

  FakeChiefClient client_;
  std::atomic<int> progress_{0};
  std::atomic<int64_t> slots_{0};
  std::atomic<int64_t> step_{-1};
  StepLoop loop_{NewOptions()};
};

TEST_F(StepLoopTest, ComputesBlocksUntilTheRunIsOver) {
  client_.streams = {{FakeChiefClient::Gives(3, 0, 2), FakeChiefClient::Gives(4, 2, 1), FakeChiefClient::Finishes()}};
  const SessionEnd end = Run();
  EXPECT_TRUE(end.status.ok());
  EXPECT_TRUE(end.final);
  EXPECT_EQ(slots_.load(), 3);
  EXPECT_EQ(step_.load(), 4) << "of the last token";
  EXPECT_EQ(progress_.load(), 1) << "the chief took the first block; the run is over after the second";
  EXPECT_EQ(client_.calls().leaves, 1);
}

TEST_F(StepLoopTest, MayFollowASessionWithAnother) {
  client_.streams = {
      {FakeChiefClient::Gives(0, 0, 1), FakeChiefClient::Fails(absl::AbortedError("generation 1 is over"))},
      {FakeChiefClient::Finishes()}};
  SessionEnd end = Run();
  EXPECT_TRUE(absl::IsAborted(end.status));
  EXPECT_FALSE(end.final);
  EXPECT_TRUE(Run().final);
}

TEST_F(StepLoopTest, AStopCancelsTheWaitForAToken) {
  client_.streams = {{}};
  std::thread stopper([this] {
    client_.AwaitTokenCalls(1);
    loop_.RequestStop();
  });
  const SessionEnd end = Run();
  stopper.join();
  EXPECT_TRUE(absl::IsCancelled(end.status));
  EXPECT_EQ(client_.calls().leaves, 1);
  EXPECT_EQ(client_.calls().cancels, 0);
  client_.streams.push_back({FakeChiefClient::Finishes()});
  EXPECT_TRUE(absl::IsCancelled(Run().status)) << "every later session ends at once";
  EXPECT_EQ(client_.calls().await_token, 1);
}

TEST_F(StepLoopTest, AHeartbeatOfARestartedChiefDropsTheBlock) {
  client_.streams = {{FakeChiefClient::Gives(0, 0, 4)}};
  const SessionEnd end =
      Run(TinyWorkload([this] { EXPECT_FALSE(loop_.OnHeartbeat(absl::AbortedError("restarted"))); }));
  EXPECT_TRUE(absl::IsCancelled(end.status));
  EXPECT_FALSE(end.final);
  EXPECT_EQ(client_.calls().reports, 0);
}

TEST_F(StepLoopTest, ASessionWithAReplacedChiefEnds) {
  client_.streams = {{}};
  std::thread heart([this] {
    client_.AwaitTokenCalls(1);
    EXPECT_FALSE(loop_.OnHeartbeat(ChiefReplaced("generation 2 answers")));
  });
  const SessionEnd end = Run();
  heart.join();
  EXPECT_EQ(end.status, ChiefReplaced("generation 2 answers"));
  EXPECT_FALSE(end.final);
  EXPECT_EQ(client_.calls().cancels, 1);
}

TEST_F(StepLoopTest, StopsAndHeartbeatsMayComeAtAnyMoment) {
  for (int round = 0; round < 100; ++round) {
    FakeChiefClient client;
    client.streams = {{}};
    for (int step = 0; step < 3; ++step) client.streams[0].push_back(FakeChiefClient::Gives(step, 0, 1));
    StepLoop loop(NewOptions());
    Workload workload = TinyWorkload();
    const v1::ModelSpec model = workload.model->spec();
    auto computer = BlockComputer::Create(config::v1::RunSpec(), std::move(workload), &loop.wanted(), &slots_);
    ASSERT_TRUE(computer.ok());
    std::thread heart([&loop] {
      for (int i = 0; i < 10; ++i) loop.OnHeartbeat(v1::HeartbeatReply());
    });
    std::thread stopper([&loop, round] {
      for (int i = 0; i < round % 3 + 1; ++i) loop.RequestStop();
    });
    EXPECT_TRUE(absl::IsCancelled(loop.Run(client.OpenStepChannel({}, model).value(), computer->get()).status));
    heart.join();
    stopper.join();
  }
}

}  // namespace
}  // namespace lockstep
