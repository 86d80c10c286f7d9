#include "lockstep/server/sync/policy/async.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/machine/step_machine.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kLease = absl::Seconds(5);
constexpr int64_t kStep = 100;

// A machine with the policy, and workers that read their tokens as soon as they can.
class AsyncTest : public ::testing::Test {
 protected:
  void Start(absl::optional<int64_t> max_staleness, std::vector<int64_t> positions = {}) {
    AsyncPolicy::Options options;
    options.max_staleness = max_staleness;
    auto policy = std::make_unique<AsyncPolicy>(options, kStep, std::move(positions));
    policy_ = policy.get();
    StepMachine::Options machine;
    machine.generation = 1;
    machine.total_steps = kStep + 1000;
    machine.lease = kLease;
    machine_ = std::make_unique<StepMachine>(machine, std::move(policy), kStep);
  }
  StepFrame FrameOf(uint64_t worker) const {
    StepFrame frame;
    frame.session_id = worker;
    frame.generation = 1;
    frame.end = true;
    if (const auto token = tokens_.find(worker); token != tokens_.end()) {
      frame.step = token->second.step;
      frame.block = token->second.block;
    }
    return frame;
  }
  void Take(const StepEffects& effects) {
    ASSERT_TRUE(effects.status.ok()) << effects.status;
    if (effects.commit) Take(machine_->OnCommitted(/*last=*/false, now_));
    if (effects.contributed) result_ = effects.contributed->result;
    for (const uint64_t worker : effects.resume) resumed_.push_back(worker);
    for (const uint64_t worker : effects.wake) {
      const auto reply = machine_->NextReply(worker, now_);
      if (!reply || !reply->token) continue;
      machine_->OnReplySent(worker, machine_->step());
      tokens_[worker] = *reply->token;
    }
  }
  void Join(uint64_t worker, int64_t startup_delay_steps = 0) {
    Take(machine_->OnConnected(worker, absl::StrCat("worker-", worker), now_));
    StepFrame frame = FrameOf(worker);
    frame.startup_delay_steps = startup_delay_steps;
    ASSERT_TRUE(machine_->OnFrame(worker, frame, now_).ok());
    StepMachine::FrameResult asked;
    asked.end = true;
    Take(machine_->OnSummed(worker, asked, now_));
  }
  void Leave(uint64_t worker) {
    tokens_.erase(worker);
    Take(machine_->OnDisconnected(worker, now_));
  }
  // Sends the worker's whole contribution in one frame. Returns true if the frame must wait.
  bool Begin(uint64_t worker, bool resumed = false) {
    const auto start = machine_->OnFrame(worker, FrameOf(worker), now_, resumed);
    EXPECT_TRUE(start.ok()) << start.status();
    return start->waits;
  }
  // Completes the contribution that Begin sent, and returns its result.
  v1::ContributionResult Finish(uint64_t worker) {
    tokens_.erase(worker);
    StepMachine::FrameResult result;
    result.end = true;
    result.admitted = machine_->OnStaged(worker, now_).has_value();
    result.wanted = result.any_new = result.summed = result.admitted;
    Take(machine_->OnSummed(worker, result, now_));
    return result_;
  }
  v1::ContributionResult Push(uint64_t worker) {
    EXPECT_FALSE(Begin(worker));
    return Finish(worker);
  }
  // Reports that the input has no batch for the worker's token. Returns true if the run ends.
  bool EndInput(uint64_t worker) {
    StepFrame frame = FrameOf(worker);
    frame.end_of_input = true;
    tokens_.erase(worker);
    EXPECT_TRUE(machine_->OnFrame(worker, frame, now_).ok());
    StepMachine::FrameResult result;
    result.end = result.input_ended = true;
    const StepEffects effects = machine_->OnSummed(worker, result, now_);
    Take(effects);
    return effects.complete;
  }
  bool waits(uint64_t worker) const { return tokens_.count(worker) == 0; }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  AsyncPolicy* policy_ = nullptr;
  std::unique_ptr<StepMachine> machine_;
  std::map<uint64_t, StepToken> tokens_;  // held by workers
  std::vector<uint64_t> resumed_;
  v1::ContributionResult result_ = v1::CONTRIBUTION_NONE;
};

TEST_F(AsyncTest, EveryContributionMakesAStep) {
  Start(absl::nullopt);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_EQ(tokens_.at(2).batch->stream, 1);
  EXPECT_EQ(Push(1), v1::CONTRIBUTION_ACCEPTED);
  EXPECT_EQ(machine_->step(), kStep + 1);
  EXPECT_EQ(Push(1), v1::CONTRIBUTION_ACCEPTED);
  EXPECT_EQ(Push(2), v1::CONTRIBUTION_ACCEPTED) << "with values that are two steps old";
  EXPECT_EQ(machine_->step(), kStep + 3);
  EXPECT_THAT(policy_->stream_positions(), ElementsAre(2, 1));
}

TEST_F(AsyncTest, ABatchCountsOnceWhoeverBringsIt) {
  Start(absl::nullopt);
  Join(1);
  now_ += kLease;
  const StepToken late = tokens_.at(1);
  Take(machine_->OnTick(now_));
  Join(2);
  EXPECT_EQ(tokens_.at(2).batch->stream, 0) << "the stream of the silent worker";
  EXPECT_EQ(Push(2), v1::CONTRIBUTION_ACCEPTED);
  tokens_[1] = late;
  EXPECT_EQ(Push(1), v1::CONTRIBUTION_DUPLICATE);
  EXPECT_EQ(machine_->step(), kStep + 1);
  EXPECT_THAT(policy_->stream_positions(), ElementsAre(1));
}

TEST_F(AsyncTest, ASilentWorkerMayBeTheFirst) {
  Start(absl::nullopt);
  Join(1);
  now_ += kLease;
  const StepToken late = tokens_.at(1);
  Take(machine_->OnTick(now_));
  Join(2);
  tokens_[1] = late;
  EXPECT_EQ(Push(1), v1::CONTRIBUTION_ACCEPTED);
  EXPECT_EQ(tokens_.at(1).batch->stream, 1) << "it has lost its stream";
  EXPECT_EQ(Push(2), v1::CONTRIBUTION_DUPLICATE);
  EXPECT_EQ(tokens_.at(2).batch->position, 1);
}

TEST_F(AsyncTest, ABatchOfAWorkerThatIsGoneComesAgain) {
  Start(absl::nullopt, /*positions=*/{3, 8});
  Join(1);
  EXPECT_EQ(Push(1), v1::CONTRIBUTION_ACCEPTED);
  EXPECT_FALSE(Begin(1));
  Leave(1);
  Join(2);
  EXPECT_EQ(tokens_.at(2).batch->stream, 0);
  EXPECT_EQ(tokens_.at(2).batch->position, 4);
}

TEST_F(AsyncTest, TheFastestWaitsForTheSlowest) {
  Start(/*max_staleness=*/2);
  for (const uint64_t worker : {1, 2}) Join(worker);
  Push(1);
  Push(1);
  ASSERT_FALSE(waits(1)) << "two ahead is within the bound";
  Push(1);
  EXPECT_TRUE(waits(1)) << "three are not";
  Push(2);
  EXPECT_FALSE(waits(1));
}

TEST_F(AsyncTest, AWorkerThatJoinsStartsLevel) {
  Start(/*max_staleness=*/0);
  Join(1);
  for (int i = 0; i < 5; ++i) Push(1);
  Join(2);
  EXPECT_FALSE(waits(1));
  Push(1);
  EXPECT_TRUE(waits(1));
  Push(2);
  EXPECT_FALSE(waits(1) || waits(2));
}

TEST_F(AsyncTest, ASilentOrLostWorkerHoldsUpNobody) {
  Start(/*max_staleness=*/0);
  for (const uint64_t worker : {1, 2, 3}) Join(worker);
  Push(1);
  Push(2);
  EXPECT_TRUE(waits(1));
  now_ += kLease - absl::Seconds(1);
  for (const uint64_t worker : {1, 2}) machine_->OnHeartbeat(worker, now_);
  now_ += absl::Seconds(1);
  Take(machine_->OnTick(now_));
  EXPECT_FALSE(waits(1) || waits(2));
  Push(1);
  EXPECT_TRUE(waits(1));
  Leave(2);
  EXPECT_FALSE(waits(1));
}

TEST_F(AsyncTest, AStartupDelayStaggersTheStart) {
  Start(absl::nullopt);
  Join(1);
  Join(2, kStep + 2);
  EXPECT_TRUE(waits(2));
  Push(1);
  EXPECT_TRUE(waits(2));
  Push(1);
  EXPECT_FALSE(waits(2));
}

TEST_F(AsyncTest, AContributionWaitsWhileTheRunIsHeld) {
  Start(absl::nullopt);
  for (const uint64_t worker : {1, 2}) Join(worker);
  Take(machine_->SetLimit(StepMachine::Limiter::kChange, kStep - 1, now_));
  EXPECT_EQ(Push(1), v1::CONTRIBUTION_ACCEPTED) << "it makes the step in progress";
  ASSERT_EQ(machine_->state(), StepMachine::State::kHeld);
  EXPECT_TRUE(Begin(2));
  Take(machine_->SetLimit(StepMachine::Limiter::kChange, StepMachine::kNoLimit, now_));
  EXPECT_THAT(resumed_, ElementsAre(2));
  EXPECT_FALSE(Begin(2, /*resumed=*/true));
  EXPECT_EQ(Finish(2), v1::CONTRIBUTION_ACCEPTED);
}

TEST_F(AsyncTest, AContributionThatAHoldOvertakesComesAgain) {
  Start(absl::nullopt);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_FALSE(Begin(2));
  Take(machine_->SetLimit(StepMachine::Limiter::kChange, kStep - 1, now_));
  Push(1);
  EXPECT_EQ(Finish(2), v1::CONTRIBUTION_REJECTED);
  Take(machine_->SetLimit(StepMachine::Limiter::kChange, StepMachine::kNoLimit, now_));
  EXPECT_EQ(tokens_.at(2).batch->position, 0);
}

TEST_F(AsyncTest, TheRunEndsWithTheLastStream) {
  Start(absl::nullopt);
  for (const uint64_t worker : {1, 2}) Join(worker);
  EXPECT_FALSE(EndInput(1));
  EXPECT_TRUE(waits(1));
  EXPECT_EQ(Push(2), v1::CONTRIBUTION_ACCEPTED);
  EXPECT_TRUE(EndInput(2));
}

}  // namespace
}  // namespace lockstep
