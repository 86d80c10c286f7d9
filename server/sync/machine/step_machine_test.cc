#include "lockstep/server/sync/machine/step_machine.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/policy/deterministic.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kGeneration = 5;
constexpr absl::Duration kLease = absl::Seconds(2);

class StepMachineTest : public ::testing::Test {
 protected:
  void Start(int64_t slots, int64_t total_steps = 100, int64_t step = 0) {
    StepMachine::Options options;
    options.generation = kGeneration;
    options.total_steps = total_steps;
    options.lease = kLease;
    options.snapshot_every_steps = 2;
    options.await_room = await_room_;
    options.slots = slots;
    options.max_partial_sums = max_partial_sums_;
    DeterministicPolicy::Options policy;
    policy.leases.slots = slots;
    policy.leases.lease = kLease;
    machine_ = std::make_unique<StepMachine>(options, std::make_unique<DeterministicPolicy>(policy, step), step);
  }
  StepEffects Connect(uint64_t session) {
    return machine_->OnConnected(session, absl::StrCat("worker-", session), now_);
  }
  static StepFrame Frame(uint64_t session, const StepToken& token = {}) {
    StepFrame frame;
    frame.session_id = session;
    frame.generation = kGeneration;
    frame.step = token.step;
    frame.block = token.block;
    return frame;
  }
  // A request for a token.
  absl::StatusOr<StepEffects> Ask(uint64_t session) {
    const auto start = machine_->OnFrame(session, Frame(session), now_);
    if (!start.ok()) return start.status();
    EXPECT_FALSE(start->begins || start->wanted);
    StepMachine::FrameResult result;
    result.end = true;
    StepEffects effects = machine_->OnSummed(session, result, now_);
    if (!effects.status.ok()) return effects.status;
    return effects;
  }
  // The token that waits for the worker, sent.
  StepToken Read(uint64_t session) {
    const auto reply = machine_->NextReply(session, now_);
    EXPECT_TRUE(reply && reply->token) << session;
    if (!reply || !reply->token) return {};
    EXPECT_TRUE(reply->takes_values);
    machine_->OnReplySent(session, /*with_token=*/true);
    return *reply->token;
  }
  // A whole contribution in one frame, which `completes` the step.
  absl::StatusOr<StepEffects> Push(uint64_t session, const StepToken& token, bool completes) {
    const auto start = machine_->OnFrame(session, Frame(session, token), now_);
    if (!start.ok()) return start.status();
    EXPECT_TRUE(start->begins);
    StepMachine::FrameResult result;
    result.end = true;
    result.wanted = result.any_new = start->wanted;
    result.summed = completes;
    StepEffects effects = machine_->OnSummed(session, result, now_);
    if (!effects.status.ok()) return effects.status;
    return effects;
  }
  void ConnectAndAsk(uint64_t session) {
    Connect(session);
    ASSERT_TRUE(Ask(session).ok());
  }

  // Step 1 with as many workers as slots: each has one. Returns their tokens, by session, which is the slot and 1.
  std::vector<StepToken> StartOneForEachSlot(int64_t slots, int64_t max_partial_sums) {
    max_partial_sums_ = max_partial_sums;
    Start(slots);
    for (int64_t slot = 0; slot < slots; ++slot) ConnectAndAsk(slot + 1);
    EXPECT_TRUE(Push(1, Read(1), /*completes=*/true)->commit) << "the first was alone at first";
    machine_->OnCommitted(/*last=*/false, now_);
    std::vector<StepToken> tokens(1);
    for (int64_t slot = 0; slot < slots; ++slot) {
      tokens.push_back(Read(slot + 1));
      EXPECT_EQ(tokens.back(), (StepToken{1, {slot, 1}}));
    }
    return tokens;
  }
  // The first frame with gradients of a contribution.
  StepMachine::FrameStart Begin(uint64_t session, const StepToken& token, bool resumed = false) {
    StepFrame frame = Frame(session, token);
    frame.gradients.emplace_back();
    const auto start = machine_->OnFrame(session, frame, now_, resumed);
    EXPECT_TRUE(start.ok()) << start.status();
    return start.ok() ? *start : StepMachine::FrameStart();
  }
  // The same frame ends it.
  StepEffects End(uint64_t session, bool wanted, bool completes = false) {
    StepMachine::FrameResult result;
    result.end = true;
    result.wanted = result.any_new = wanted;
    result.summed = completes;
    return machine_->OnSummed(session, result, now_);
  }

  bool await_room_ = false;
  int64_t max_partial_sums_ = StepMachine::kNoLimit;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::unique_ptr<StepMachine> machine_;
};

TEST_F(StepMachineTest, AStepIsCommittedWhenItIsSummed) {
  Start(2);
  Connect(1);
  Connect(2);
  EXPECT_THAT(Ask(1)->wake, ElementsAre(1)) << "alone, it gets everything";
  EXPECT_THAT(Ask(2)->wake, IsEmpty());
  const StepToken token = Read(1);
  EXPECT_EQ(token, (StepToken{0, {0, 2}}));
  EXPECT_FALSE(machine_->NextReply(1, now_)) << "it computes";
  now_ += absl::Seconds(1);
  const auto pushed = Push(1, token, /*completes=*/true);
  ASSERT_TRUE(pushed.ok());
  EXPECT_TRUE(pushed->commit);
  EXPECT_THAT(pushed->wake, IsEmpty()) << "tokens are given when the step is committed";
  ASSERT_TRUE(pushed->contributed);
  EXPECT_EQ(pushed->contributed->result, v1::CONTRIBUTION_ACCEPTED);
  EXPECT_EQ(pushed->contributed->took, absl::Seconds(1));
  const StepEffects committed = machine_->OnCommitted(/*last=*/false, now_);
  EXPECT_EQ(machine_->step(), 1);
  EXPECT_FALSE(committed.snapshot);
  EXPECT_THAT(committed.wake, ElementsAre(1, 2));
  EXPECT_EQ(machine_->NextReply(1, now_)->result, v1::CONTRIBUTION_ACCEPTED) << "it hears with its token";
  EXPECT_EQ(Read(1), (StepToken{1, {0, 1}}));
  EXPECT_EQ(Read(2), (StepToken{1, {1, 1}}));
}

TEST_F(StepMachineTest, AContributionWaitsForThoseThatMakeRoom) {
  const std::vector<StepToken> tokens = StartOneForEachSlot(8, /*max_partial_sums=*/3);
  for (const uint64_t session : {1, 3, 5}) EXPECT_TRUE(Begin(session, tokens[session]).wanted) << session;
  const StepMachine::FrameStart start = Begin(7, tokens[7]);
  EXPECT_TRUE(start.begins && start.waits);
  EXPECT_FALSE(start.wanted);
  for (const uint64_t session : {1, 3, 5}) EXPECT_THAT(End(session, true).resume, IsEmpty());
  EXPECT_TRUE(Begin(2, tokens[2]).wanted);
  EXPECT_THAT(End(2, true).resume, IsEmpty());
  EXPECT_TRUE(Begin(4, tokens[4]).wanted);
  EXPECT_THAT(End(4, true).resume, ElementsAre(7)) << "[0,4) is one sum";
  const StepMachine::FrameStart resumed = Begin(7, tokens[7], /*resumed=*/true);
  EXPECT_TRUE(resumed.wanted);
  EXPECT_FALSE(resumed.begins || resumed.waits);
  const StepEffects ended = End(7, true);
  ASSERT_TRUE(ended.contributed);
  EXPECT_EQ(ended.contributed->result, v1::CONTRIBUTION_ACCEPTED);
}

TEST_F(StepMachineTest, AContributionThatWaitsKeepsItsLeaseWhileItsWorkerIsHeard) {
  const std::vector<StepToken> tokens = StartOneForEachSlot(3, /*max_partial_sums=*/1);
  EXPECT_TRUE(Begin(3, tokens[3]).waits);
  for (int i = 0; i < 4; ++i) {
    now_ += kLease * 0.9;
    for (const uint64_t session : {1, 2, 3}) machine_->OnHeartbeat(session, now_);
    const StepEffects effects = machine_->OnTick(now_);
    EXPECT_THAT(effects.events, IsEmpty());
    EXPECT_THAT(effects.resume, IsEmpty());
  }
  for (const uint64_t session : {1, 2}) EXPECT_TRUE(Begin(session, tokens[session]).wanted);
  EXPECT_THAT(End(1, true).resume, IsEmpty());
  EXPECT_THAT(End(2, true).resume, ElementsAre(3));
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Begin(3, tokens[3], true).wanted);
  now_ += absl::Seconds(2);
  const StepEffects ended = End(3, true, /*completes=*/true);
  EXPECT_TRUE(ended.commit);
  EXPECT_EQ(ended.contributed->took, absl::Seconds(2)) << "the wait does not count";
}

TEST_F(StepMachineTest, AWorkerThatDiesWhileItWaitsLosesItsSlot) {
  const std::vector<StepToken> tokens = StartOneForEachSlot(3, /*max_partial_sums=*/1);
  EXPECT_TRUE(Begin(3, tokens[3]).waits);
  now_ += kLease * 0.9;
  for (const uint64_t session : {1, 2}) machine_->OnHeartbeat(session, now_);
  now_ += kLease * 0.2;
  const StepEffects effects = machine_->OnTick(now_);
  EXPECT_THAT(effects.resume, ElementsAre(3)) << "to see whether its stream still is";
  const StepMachine::FrameStart start = Begin(3, tokens[3], /*resumed=*/true);
  EXPECT_FALSE(start.wanted || start.waits);
  EXPECT_TRUE(Begin(1, tokens[1]).wanted);
  End(1, true);
  EXPECT_EQ(Read(1), tokens[3]);
}

TEST_F(StepMachineTest, AWorkerThatWaitsForSlotsThatNobodyBringsComputesThem) {
  const std::vector<StepToken> tokens = StartOneForEachSlot(3, /*max_partial_sums=*/1);
  EXPECT_TRUE(Begin(3, tokens[3]).waits);
  machine_->OnDisconnected(1, now_);
  EXPECT_THAT(machine_->OnTick(now_).resume, IsEmpty()) << "there is one more worker";
  machine_->OnDisconnected(2, now_);
  const StepEffects effects = machine_->OnTick(now_);
  EXPECT_THAT(effects.resume, ElementsAre(3));
  EXPECT_EQ(effects.events.size(), 1u);
  EXPECT_FALSE(Begin(3, tokens[3], /*resumed=*/true).wanted);
  EXPECT_FALSE(machine_->OnFrame(3, Frame(3, tokens[3]), now_)->wanted) << "nor a frame without gradients";
  EXPECT_THAT(machine_->OnTick(now_).resume, IsEmpty()) << "it is at work";
  const StepEffects dropped = End(3, /*wanted=*/false);
  EXPECT_EQ(dropped.contributed->result, v1::CONTRIBUTION_DUPLICATE);
  StepToken token = Read(3);
  EXPECT_EQ(token, (StepToken{1, {0, 2}}));
  EXPECT_TRUE(Begin(3, token).wanted);
  End(3, true);
  token = Read(3);
  EXPECT_EQ(token, (StepToken{1, {2, 1}}));
  EXPECT_TRUE(Begin(3, token).wanted);
  EXPECT_TRUE(End(3, true, /*completes=*/true).commit);
}

TEST_F(StepMachineTest, AWorkerThatWaitsForOneThatHangsTakesItsPlace) {
  const std::vector<StepToken> tokens = StartOneForEachSlot(3, /*max_partial_sums=*/1);
  EXPECT_TRUE(Begin(3, tokens[3]).waits);
  absl::InlinedVector<uint64_t, 2> resumed;
  for (int i = 0; i < 10 && resumed.empty(); ++i) {
    now_ += kLease * 0.9;
    for (const uint64_t session : {1, 2, 3}) machine_->OnHeartbeat(session, now_);  // 1 and 2 do nothing else
    resumed = machine_->OnTick(now_).resume;
  }
  ASSERT_THAT(resumed, ElementsAre(3));
  EXPECT_FALSE(Begin(3, tokens[3], true).wanted);
  End(3, false);
  EXPECT_EQ(Read(3), tokens[1]) << "a copy of the first slot";
}

TEST_F(StepMachineTest, NobodyWaitsForAStepThatIsOver) {
  const auto wait = [this] {
    const std::vector<StepToken> tokens = StartOneForEachSlot(3, /*max_partial_sums=*/1);
    EXPECT_TRUE(Begin(3, tokens[3]).waits);
    return tokens;
  };
  std::vector<StepToken> tokens = wait();
  EXPECT_THAT(machine_->Stop().resume, ElementsAre(3));
  EXPECT_FALSE(Begin(3, tokens[3], true).waits);
  tokens = wait();
  EXPECT_THAT(machine_->Finish().resume, ElementsAre(3));
  EXPECT_FALSE(Begin(3, tokens[3], true).waits);
  tokens = wait();
  StepMachine::FrameResult fails;
  fails.failure = absl::InvalidArgumentError("a loss is not finite");
  EXPECT_TRUE(Begin(1, tokens[1]).wanted);
  fails.wanted = true;
  EXPECT_THAT(machine_->OnSummed(1, fails, now_).resume, ElementsAre(3));
  tokens = wait();
  EXPECT_TRUE(Begin(1, tokens[1]).wanted);
  const StepEffects effects = End(1, true, /*completes=*/true);  // a copy of another stream has brought the rest
  EXPECT_TRUE(effects.commit);
  EXPECT_THAT(machine_->OnCommitted(false, now_).resume, ElementsAre(3));
  EXPECT_FALSE(Begin(3, tokens[3], true).waits);
}

TEST_F(StepMachineTest, ASnapshotIsDueAtMultiplesOfSteps) {
  Start(1);
  ConnectAndAsk(1);
  for (int64_t step = 1; step <= 4; ++step) {
    ASSERT_TRUE(Push(1, Read(1), true)->commit);
    EXPECT_EQ(machine_->OnCommitted(/*last=*/false, now_).snapshot, step % 2 == 0);
  }
}

TEST_F(StepMachineTest, FramesOfOthersAreRefused) {
  Start(1);
  Connect(1);
  StepFrame frame = Frame(1);
  frame.generation = 4;
  EXPECT_TRUE(absl::IsAborted(machine_->OnFrame(1, frame, now_).status()));
  frame = Frame(7);
  const absl::Status status = machine_->OnFrame(1, frame, now_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "a frame of session 7 on the stream of session 1");
}

TEST_F(StepMachineTest, AContributionNeedsATokenThatWasSent) {
  Start(1);
  ConnectAndAsk(1);
  const StepToken token{0, {0, 1}};
  EXPECT_TRUE(absl::IsFailedPrecondition(Push(1, token, true).status()));
  Read(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Push(1, {0, {0, 2}}, true).status()));
  EXPECT_TRUE(Push(1, token, true).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Push(1, token, true).status())) << "once";
}

TEST_F(StepMachineTest, AContributionInPartsIsNewIfAnyPartIs) {
  Start(1);
  ConnectAndAsk(1);
  const StepToken token = Read(1);
  StepMachine::FrameResult result;
  for (int part = 0; part < 3; ++part) {
    const auto start = machine_->OnFrame(1, Frame(1, token), now_);
    ASSERT_TRUE(start.ok());
    EXPECT_TRUE(start->wanted);
    EXPECT_EQ(start->begins, part == 0);
    result.wanted = true;
    result.any_new = part == 1;
    result.end = part == 2;
    const StepEffects effects = machine_->OnSummed(1, result, now_);
    ASSERT_TRUE(effects.status.ok());
    EXPECT_EQ(effects.contributed.has_value(), part == 2);
    if (part == 2) {
      EXPECT_EQ(effects.contributed->result, v1::CONTRIBUTION_ACCEPTED);
    }
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(1).status())) << "it waits already";
}

TEST_F(StepMachineTest, AnotherFrameInsideAContributionIsRefused) {
  Start(1);
  ConnectAndAsk(1);
  ASSERT_TRUE(machine_->OnFrame(1, Frame(1, Read(1)), now_).ok());
  EXPECT_EQ(machine_->OnFrame(1, Frame(1), now_).status().message(), "the previous contribution was not finished");
}

TEST_F(StepMachineTest, AnEndedLeaseIsNamedAndItsSlotsGoToAnother) {
  Start(1);
  ConnectAndAsk(1);
  const StepToken late = Read(1);
  now_ += kLease - absl::Milliseconds(1);
  Connect(2);
  Connect(3);
  ASSERT_TRUE(Ask(2).ok());
  ASSERT_TRUE(Ask(3).ok());
  Read(2);  // a backup
  now_ += absl::Milliseconds(1);
  const StepEffects effects = machine_->OnTick(now_);
  ASSERT_EQ(effects.events.size(), 1u);
  EXPECT_EQ(ToString(effects.events[0]), "worker-1 was silent for 2s: slots [0,1) of step 0 go to another worker");
  EXPECT_THAT(effects.wake, ElementsAre(3));
  EXPECT_THAT(effects.close, IsEmpty());
  const auto pushed = Push(1, late, true);
  ASSERT_TRUE(pushed.ok());
  EXPECT_TRUE(pushed->commit) << "the faster copy wins, whoever made it";
}

TEST_F(StepMachineTest, HeartbeatsKeepALease) {
  Start(1);
  ConnectAndAsk(1);
  Read(1);
  for (int i = 0; i < 3; ++i) {
    now_ += kLease * 0.75;
    machine_->OnHeartbeat(1, now_);
    machine_->OnHeartbeat(99, now_);
    EXPECT_THAT(machine_->OnTick(now_).events, IsEmpty());
  }
}

TEST_F(StepMachineTest, AStreamThatIsNotReadIsClosed) {
  Start(1);
  ConnectAndAsk(1);
  now_ += kLease;
  EXPECT_THAT(machine_->OnTick(now_).close, IsEmpty());
  now_ += absl::Seconds(58);
  const StepEffects effects = machine_->OnTick(now_);
  ASSERT_EQ(effects.close.size(), 1u);
  EXPECT_EQ(effects.close[0].session, 1u);
  EXPECT_TRUE(effects.close[0].at_once);
  EXPECT_TRUE(absl::IsAborted(effects.close[0].why));
  EXPECT_FALSE(machine_->connected(1));
  EXPECT_TRUE(machine_->idle());
}

TEST_F(StepMachineTest, OneThatReadsAtLastIsNoLongerSilent) {
  Start(1);
  ConnectAndAsk(1);
  now_ += kLease;
  machine_->OnTick(now_);
  now_ += absl::Seconds(30);
  ASSERT_TRUE(machine_->NextReply(1, now_));
  now_ += absl::Seconds(58);
  EXPECT_THAT(machine_->OnTick(now_).close, IsEmpty());
}

TEST_F(StepMachineTest, ASecondStreamOfASessionClosesTheFirst) {
  Start(1);
  ConnectAndAsk(1);
  const StepEffects effects = Connect(1);
  ASSERT_EQ(effects.close.size(), 1u);
  EXPECT_EQ(effects.close[0].why.message(), "session 1 has opened another Step stream");
  EXPECT_TRUE(effects.close[0].at_once) << "it would keep what it has not read";
  EXPECT_TRUE(machine_->connected(1));
  EXPECT_TRUE(Ask(1).ok()) << "the second begins anew";
}

TEST_F(StepMachineTest, OneThatIsGoneFreesItsToken) {
  Start(1);
  ConnectAndAsk(1);
  ConnectAndAsk(2);
  ConnectAndAsk(3);
  EXPECT_THAT(machine_->OnDisconnected(1, now_).wake, ElementsAre(3));
}

TEST_F(StepMachineTest, WhoLeavesHearsNothingMore) {
  Start(1);
  ConnectAndAsk(1);
  ASSERT_TRUE(machine_->OnFrame(1, Frame(1), now_).ok());
  StepMachine::FrameResult leave;
  leave.leave = true;
  ASSERT_TRUE(machine_->OnSummed(1, leave, now_).status.ok());
  EXPECT_FALSE(machine_->NextReply(1, now_));
  EXPECT_TRUE(machine_->connected(1)) << "its stream ends by itself";
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(1).status()));
}

TEST_F(StepMachineTest, LeavingFreesTheSlotsOfTheToken) {
  Start(2);
  ConnectAndAsk(1);
  Read(1);
  ConnectAndAsk(2);
  ASSERT_TRUE(machine_->OnFrame(1, Frame(1), now_).ok());
  StepMachine::FrameResult leave;
  leave.leave = true;
  EXPECT_THAT(machine_->OnSummed(1, leave, now_).wake, ElementsAre(2)) << "before the lease ends";
}

TEST_F(StepMachineTest, AFailureIsNamedOnceAndNothingIsCommitted) {
  Start(1);
  ConnectAndAsk(1);
  ConnectAndAsk(2);
  const StepToken token = Read(1), copy = Read(2);
  for (const auto& worker : {std::make_pair(1, token), std::make_pair(2, copy)}) {
    const auto start = machine_->OnFrame(worker.first, Frame(worker.first, worker.second), now_);
    ASSERT_TRUE(start.ok());
    EXPECT_EQ(start->wanted, worker.first == 1);
    StepMachine::FrameResult result;
    result.end = result.wanted = result.summed = true;
    result.failure = absl::InvalidArgumentError("the loss is not finite");
    const StepEffects effects = machine_->OnSummed(worker.first, result, now_);
    ASSERT_TRUE(effects.status.ok());
    EXPECT_FALSE(effects.commit);
    EXPECT_EQ(effects.failure.ok(), worker.first == 2) << "several may meet the same loss";
  }
  EXPECT_FALSE(machine_->NextReply(1, now_)) << "until the chief says what follows";
  EXPECT_THAT(machine_->Finish().wake, ElementsAre(1, 2));
  EXPECT_TRUE(machine_->NextReply(1, now_)->finished);
}

TEST_F(StepMachineTest, TheSumsOfAClosedStreamCount) {
  Start(1);
  ConnectAndAsk(1);
  ASSERT_TRUE(machine_->OnFrame(1, Frame(1, Read(1)), now_).ok());
  machine_->OnDisconnected(1, now_);
  StepMachine::FrameResult result;
  result.wanted = result.summed = true;
  EXPECT_TRUE(machine_->OnOrphanSummed(result, now_).commit);
  result.wanted = false;
  EXPECT_FALSE(machine_->OnOrphanSummed(result, now_).commit) << "of another step";
}

TEST_F(StepMachineTest, AfterAStopNoTokenIsGivenAndNobodyIsTold) {
  Start(1);
  ConnectAndAsk(1);
  ConnectAndAsk(2);
  const StepToken token = Read(1);
  machine_->Stop();
  EXPECT_FALSE(machine_->running());
  EXPECT_FALSE(machine_->NextReply(2, now_)->token) << "its token is void";
  const auto pushed = Push(1, token, true);
  ASSERT_TRUE(pushed.ok()) << "the worker did nothing wrong";
  EXPECT_FALSE(pushed->commit);
  EXPECT_THAT(pushed->wake, IsEmpty());
  v1::WorkerStatus status;
  machine_->FillStatus(1, now_, &status);
  EXPECT_EQ(status.slot_count(), 0);
}

TEST_F(StepMachineTest, TheEndIsToldToThoseThatWaitOrCome) {
  Start(1, /*total_steps=*/1);
  ConnectAndAsk(1);
  ConnectAndAsk(2);
  const StepToken token = Read(1), backup = Read(2);
  ASSERT_TRUE(Push(1, token, true)->commit);
  EXPECT_THAT(machine_->OnCommitted(/*last=*/false, now_).wake, IsEmpty());
  EXPECT_FALSE(machine_->running()) << "the last step is done";
  EXPECT_FALSE(machine_->NextReply(1, now_)->token);
  EXPECT_THAT(machine_->Finish().wake, ElementsAre(1));
  EXPECT_TRUE(machine_->NextReply(1, now_)->finished);
  EXPECT_FALSE(machine_->NextReply(1, now_)) << "once";
  EXPECT_THAT(Push(2, backup, false)->wake, ElementsAre(2));
  const auto reply = machine_->NextReply(2, now_);
  EXPECT_TRUE(reply->finished);
  EXPECT_EQ(reply->result, v1::CONTRIBUTION_DUPLICATE);
  Connect(3);
  EXPECT_THAT(Ask(3)->wake, ElementsAre(3));
}

TEST_F(StepMachineTest, ARunThatWasFinishedBeforeGivesNothing) {
  Start(1, /*total_steps=*/3, /*step=*/3);
  Connect(1);
  EXPECT_THAT(Ask(1)->wake, IsEmpty());
  EXPECT_FALSE(machine_->running());
}

TEST_F(StepMachineTest, ContributorsAreThoseThatCanUseTheNextValues) {
  Start(2);
  for (const uint64_t session : {1, 2}) Connect(session);
  for (const uint64_t session : {1, 2}) ASSERT_TRUE(Ask(session).ok());
  const StepToken first = Read(1);
  ASSERT_TRUE(Push(1, first, true)->commit);
  machine_->OnCommitted(/*last=*/false, now_);
  EXPECT_THAT(machine_->contributors(), IsEmpty());
  const StepToken a = Read(1);
  Read(2);
  ASSERT_TRUE(machine_->OnFrame(1, Frame(1, a), now_).ok());
  EXPECT_THAT(machine_->contributors(), ElementsAre(1)) << "it is at its contribution";
  const auto reply = machine_->NextReply(1, now_);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->takes_values);
  EXPECT_FALSE(reply->token);
  StepMachine::FrameResult result;
  result.end = result.wanted = result.any_new = true;
  ASSERT_TRUE(machine_->OnSummed(1, result, now_).status.ok());
  EXPECT_THAT(machine_->contributors(), ElementsAre(1)) << "it waits for the next step";
}

TEST_F(StepMachineTest, TheStatusShowsEachLease) {
  Start(2);
  ConnectAndAsk(1);
  now_ += absl::Seconds(1);
  v1::WorkerStatus status;
  machine_->FillStatus(1, now_, &status);
  EXPECT_EQ(status.slot_count(), 2);
  EXPECT_EQ(status.lease_seconds(), 1);
  EXPECT_EQ(status.silent_seconds(), 1);
}

TEST_F(StepMachineTest, EveryEventMovesEveryStateAsTheTableSays) {
  using State = StepMachine::State;
  const auto fail = [this] {
    StepMachine::FrameResult result;
    result.failure = absl::InvalidArgumentError("the loss is not finite");
    return !machine_->OnOrphanSummed(result, now_).failure.ok();
  };
  using Limiter = StepMachine::Limiter;
  const auto enter = [&](State state) {
    Start(1, /*total_steps=*/state == State::kHeld ? 3 : 1);
    if (state == State::kHeld) {
      machine_->SetLimit(Limiter::kFollower, 0, now_);
      EXPECT_TRUE(machine_->running()) << "the step in progress goes on";
      machine_->OnCommitted(/*last=*/false, now_);
    }
    if (state == State::kComplete) machine_->OnCommitted(/*last=*/false, now_);
    if (state == State::kStopped) machine_->Stop();
    if (state == State::kFailed) fail();
    if (state == State::kFinished) machine_->Finish();
    ASSERT_EQ(machine_->state(), state);
  };
  for (const State state :
       {State::kRunning, State::kHeld, State::kComplete, State::kStopped, State::kFailed, State::kFinished}) {
    const bool open = state == State::kRunning || state == State::kHeld;
    const bool over = state == State::kFailed || state == State::kFinished;
    enter(state);
    EXPECT_EQ(fail(), !over) << "a failure is named once, and not after the end";
    EXPECT_EQ(machine_->state(), over ? state : State::kFailed);
    enter(state);
    machine_->Stop();
    EXPECT_EQ(machine_->state(), open ? State::kStopped : state);
    enter(state);
    StepEffects effects = machine_->SetLimit(Limiter::kFollower, 1, now_);
    EXPECT_EQ(effects.begin, state == State::kHeld);
    EXPECT_EQ(machine_->state(), state == State::kHeld ? State::kRunning : state);
    enter(state);
    ConnectAndAsk(1);
    effects = machine_->EndAt(machine_->next_boundary(), now_);
    EXPECT_EQ(effects.complete, state == State::kHeld) << "a step in progress is committed first";
    EXPECT_EQ(machine_->state(), state == State::kHeld ? State::kComplete : state);
    EXPECT_EQ(machine_->OnDisconnected(1, now_).complete, state == State::kRunning) << "unless nobody is at it";
    EXPECT_EQ(machine_->state(), open ? State::kComplete : state);
    enter(state);
    ConnectAndAsk(1);
    const int64_t step = machine_->step();
    EXPECT_FALSE(machine_->SetLimit(Limiter::kChange, step - 1, now_).give_up);
    EXPECT_EQ(machine_->state(), state);
    EXPECT_EQ(machine_->OnDisconnected(1, now_).give_up, state == State::kRunning);
    EXPECT_EQ(machine_->state(), state == State::kRunning ? State::kHeld : state);
    EXPECT_EQ(machine_->step(), step);
    enter(state);
    EXPECT_EQ(machine_->SetLimit(Limiter::kChange, step - 1, now_).give_up, state == State::kRunning) << "at once";
    enter(state);
    StepMachine::FrameResult ended;
    ended.wanted = ended.input_ended = true;
    EXPECT_EQ(machine_->OnOrphanSummed(ended, now_).complete, state == State::kRunning);
    EXPECT_EQ(machine_->state(), state == State::kRunning ? State::kComplete : state);
    enter(state);
    machine_->Finish();
    EXPECT_EQ(machine_->state(), State::kFinished);
    enter(state);
    StepMachine::FrameResult summed;
    summed.wanted = summed.summed = true;
    EXPECT_EQ(machine_->OnOrphanSummed(summed, now_).commit, state == State::kRunning);
  }
}

TEST_F(StepMachineTest, NoTokenIsGivenBeyondTheLowestLimit) {
  using Limiter = StepMachine::Limiter;
  Start(1);
  ConnectAndAsk(1);
  machine_->SetLimit(Limiter::kFollower, 1, now_);
  machine_->SetLimit(Limiter::kChange, 0, now_);
  ASSERT_TRUE(Push(1, Read(1), true)->commit);
  StepEffects effects = machine_->OnCommitted(/*last=*/false, now_);
  EXPECT_FALSE(effects.begin);
  EXPECT_THAT(effects.wake, IsEmpty());
  EXPECT_EQ(machine_->next_boundary(), 1) << "it is held at step 1";
  EXPECT_THAT(Ask(1).status().code(), absl::StatusCode::kInvalidArgument) << "it has asked";
  EXPECT_THAT(machine_->SetLimit(Limiter::kFollower, 5, now_).wake, IsEmpty());
  effects = machine_->SetLimit(Limiter::kChange, 7, now_);
  EXPECT_TRUE(effects.begin);
  EXPECT_THAT(effects.wake, ElementsAre(1));
  EXPECT_EQ(Read(1), (StepToken{1, {0, 1}}));
  EXPECT_EQ(machine_->next_boundary(), 2);
}

TEST_F(StepMachineTest, ASnapshotOfAHeldStepIsTakenWhenItGoesOn) {
  Start(1);
  ConnectAndAsk(1);
  machine_->SetLimit(StepMachine::Limiter::kFollower, 1, now_);
  for (int64_t step = 1; step <= 2; ++step) {
    ASSERT_TRUE(Push(1, Read(1), true)->commit);
    EXPECT_FALSE(machine_->OnCommitted(/*last=*/false, now_).snapshot) << "of step 2 when those who hold it are done";
  }
  EXPECT_TRUE(machine_->SetLimit(StepMachine::Limiter::kFollower, 2, now_).snapshot);
}

TEST_F(StepMachineTest, StepsWaitWhereThereIsNoRoomForASnapshot) {
  await_room_ = true;
  Start(1);
  ConnectAndAsk(1);
  const auto commit = [this] {
    EXPECT_TRUE(Push(1, Read(1), true)->commit);
    return machine_->OnCommitted(/*last=*/false, now_);
  };
  commit();
  EXPECT_TRUE(commit().snapshot) << "of step 2";
  commit();
  EXPECT_FALSE(commit().begin) << "step 4 cannot be saved yet";
  EXPECT_FALSE(machine_->TakeRoom());
  const StepEffects effects = machine_->OnRoomForSnapshot(now_);
  EXPECT_TRUE(effects.begin);
  EXPECT_TRUE(effects.snapshot);
  commit();
  machine_->OnRoomForSnapshot(now_);
  EXPECT_TRUE(commit().snapshot) << "of step 6, for which there is room";
  machine_->SetLimit(StepMachine::Limiter::kFollower, 7, now_);
  commit();
  commit();
  EXPECT_FALSE(machine_->SetLimit(StepMachine::Limiter::kFollower, 100, now_).begin) << "there is no room yet";
  EXPECT_TRUE(machine_->OnRoomForSnapshot(now_).begin);
}

TEST_F(StepMachineTest, AContributionMayAskForTheEnd) {
  Start(1);
  ConnectAndAsk(1);
  ASSERT_TRUE(Push(1, Read(1), true)->commit);
  const StepEffects effects = machine_->OnCommitted(/*last=*/true, now_);
  EXPECT_TRUE(effects.complete);
  EXPECT_EQ(machine_->total_steps(), 1);
  EXPECT_THAT(effects.wake, IsEmpty());
}

TEST_F(StepMachineTest, AStepThatEndsTheRunEarlyIsSavedByWhoeverRecordsTheEnd) {
  Start(1);
  ConnectAndAsk(1);
  ASSERT_TRUE(Push(1, Read(1), true)->commit);
  machine_->OnCommitted(/*last=*/false, now_);
  ASSERT_TRUE(Push(1, Read(1), true)->commit);
  const StepEffects effects = machine_->OnCommitted(/*last=*/true, now_);
  EXPECT_TRUE(effects.complete);
  EXPECT_FALSE(effects.snapshot) << "of step 2, which is due";
  EXPECT_FALSE(machine_->TakeRoom());
}

TEST_F(StepMachineTest, TheEndOfTheInputEndsTheRunBeforeTheStep) {
  Start(2);
  ConnectAndAsk(1);
  const StepToken token = Read(1);
  ASSERT_TRUE(machine_->OnFrame(1, Frame(1, token), now_).ok());
  StepMachine::FrameResult result;
  result.end = result.wanted = result.input_ended = true;
  const StepEffects effects = machine_->OnSummed(1, result, now_);
  EXPECT_TRUE(effects.status.ok()) << effects.status;
  EXPECT_TRUE(effects.complete);
  EXPECT_FALSE(effects.commit);
  EXPECT_EQ(machine_->total_steps(), 0);
  EXPECT_THAT(machine_->Finish().wake, ElementsAre(1));
}

TEST_F(StepMachineTest, AStepThatIsGivenUpBeginsAnewForThoseWhoComeThen) {
  Start(2);
  ConnectAndAsk(1);
  ASSERT_TRUE(Push(1, Read(1), /*completes=*/false).ok());
  machine_->OnDisconnected(1, now_);
  EXPECT_TRUE(machine_->running()) << "it waits for a worker";
  const StepEffects held = machine_->SetLimit(StepMachine::Limiter::kChange, -1, now_);
  EXPECT_TRUE(held.give_up);
  EXPECT_FALSE(held.begin);
  EXPECT_EQ(machine_->next_boundary(), 0);
  Connect(2);
  EXPECT_THAT(Ask(2)->wake, IsEmpty());
  const StepEffects begun = machine_->SetLimit(StepMachine::Limiter::kChange, StepMachine::kNoLimit, now_);
  EXPECT_TRUE(begun.begin);
  EXPECT_THAT(begun.close, IsEmpty());
  EXPECT_THAT(begun.wake, ElementsAre(2));
  const StepToken token = Read(2);
  EXPECT_EQ(token, (StepToken{0, {0, 2}})) << "what was contributed before counts no more";
  EXPECT_TRUE(Push(2, token, /*completes=*/true)->commit);
}

TEST_F(StepMachineTest, WhoHadATokenOfAStepThatWasGivenUpLosesItsStream) {
  Start(2);
  ConnectAndAsk(1);
  ConnectAndAsk(2);
  ASSERT_TRUE(Push(1, Read(1), true)->commit);
  machine_->OnCommitted(/*last=*/false, now_);
  const StepFrame frame = Frame(1, Read(1));
  ASSERT_TRUE(machine_->OnFrame(1, frame, now_)->wanted);
  StepMachine::FrameResult part;
  part.wanted = part.any_new = true;
  machine_->OnSummed(1, part, now_);
  EXPECT_FALSE(machine_->SetLimit(StepMachine::Limiter::kChange, 0, now_).give_up);
  Read(2);
  machine_->OnHeartbeat(2, now_ + kLease / 2);
  now_ += kLease;
  EXPECT_FALSE(machine_->OnTick(now_).give_up) << "the other one is computing";
  now_ += kLease;
  EXPECT_TRUE(machine_->OnTick(now_).give_up) << "both are silent";
  EXPECT_FALSE(machine_->OnFrame(1, frame, now_)->wanted);
  part.wanted = false;
  part.end = true;
  EXPECT_TRUE(machine_->OnSummed(1, part, now_).status.ok()) << "it need not know";
  const StepEffects begun = machine_->SetLimit(StepMachine::Limiter::kChange, StepMachine::kNoLimit, now_);
  EXPECT_TRUE(begun.begin);
  ASSERT_EQ(begun.close.size(), 2);
  EXPECT_TRUE(absl::IsAborted(begun.close[0].why)) << begun.close[0].why;
  EXPECT_TRUE(machine_->idle());
}

TEST_F(StepMachineTest, AStepIsNotGivenUpWhileAFrameIsSummed) {
  Start(1);
  ConnectAndAsk(1);
  ASSERT_TRUE(machine_->OnFrame(1, Frame(1, Read(1)), now_)->wanted);
  machine_->OnDisconnected(1, now_);
  EXPECT_FALSE(machine_->SetLimit(StepMachine::Limiter::kChange, -1, now_).give_up);
  StepMachine::FrameResult part;
  part.wanted = true;
  EXPECT_TRUE(machine_->OnOrphanSummed(part, now_).give_up);
}

TEST_F(StepMachineTest, AStepIsNotGivenUpOnceItIsSummed) {
  Start(1);
  ConnectAndAsk(1);
  ASSERT_TRUE(machine_->OnFrame(1, Frame(1, Read(1)), now_)->wanted);
  machine_->OnDisconnected(1, now_);
  machine_->SetLimit(StepMachine::Limiter::kChange, -1, now_);
  StepMachine::FrameResult last;
  last.wanted = last.summed = true;
  const StepEffects effects = machine_->OnOrphanSummed(last, now_);
  EXPECT_TRUE(effects.commit);
  EXPECT_FALSE(effects.give_up);
  machine_->OnCommitted(/*last=*/false, now_);
  EXPECT_EQ(machine_->state(), StepMachine::State::kHeld);
  EXPECT_EQ(machine_->step(), 1);
}

TEST_F(StepMachineTest, TheProgramThatFollowsTheRunGivesNoStepUp) {
  Start(1);
  EXPECT_FALSE(machine_->SetLimit(StepMachine::Limiter::kFollower, -1, now_).give_up);
  EXPECT_TRUE(machine_->running());
}

TEST_F(StepMachineTest, AStepThatBeginsAnewIsNotSavedAgain) {
  await_room_ = true;
  Start(1, /*total_steps=*/100, /*step=*/1);
  ConnectAndAsk(1);
  ASSERT_TRUE(Push(1, Read(1), true)->commit);
  EXPECT_TRUE(machine_->OnCommitted(/*last=*/false, now_).snapshot) << "of step 2";
  machine_->OnDisconnected(1, now_);
  EXPECT_TRUE(machine_->SetLimit(StepMachine::Limiter::kChange, 1, now_).give_up);
  const StepEffects begun = machine_->SetLimit(StepMachine::Limiter::kChange, StepMachine::kNoLimit, now_);
  EXPECT_TRUE(begun.begin) << "without room";
  EXPECT_FALSE(begun.snapshot);
}

TEST_F(StepMachineTest, AnEndThatIsAskedForDoesNotWaitForAWorker) {
  Start(1, /*total_steps=*/1);
  ConnectAndAsk(1);
  EXPECT_FALSE(machine_->EndAt(1, now_).complete);
  EXPECT_TRUE(machine_->OnDisconnected(1, now_).complete) << "even where it is the configured one";
  EXPECT_EQ(machine_->total_steps(), 0);
  Start(1, /*total_steps=*/10);
  EXPECT_FALSE(machine_->EndAt(2, now_).complete) << "it is not the next boundary";
  EXPECT_TRUE(machine_->EndAt(1, now_).complete);
  EXPECT_EQ(machine_->total_steps(), 0);
}

TEST_F(StepMachineTest, AnEndAskedForWhereAStepWasGivenUpMeanwhileIsThere) {
  Start(1, /*total_steps=*/10);
  ConnectAndAsk(1);
  machine_->SetLimit(StepMachine::Limiter::kChange, -1, now_);
  const int64_t boundary = machine_->next_boundary();
  EXPECT_TRUE(machine_->OnDisconnected(1, now_).give_up);
  EXPECT_FALSE(machine_->EndAt(boundary, now_).complete) << "it is held, and someone might still come";
  EXPECT_TRUE(machine_->SetLimit(StepMachine::Limiter::kChange, StepMachine::kNoLimit, now_).complete);
  EXPECT_EQ(machine_->total_steps(), 0);
}

TEST_F(StepMachineTest, AnEndIsNeverLaterThanBefore) {
  Start(1, /*total_steps=*/10);
  ConnectAndAsk(1);
  machine_->EndAt(4, now_);
  machine_->EndAt(7, now_);
  EXPECT_EQ(machine_->total_steps(), 4);
  machine_->EndAt(0, now_);
  EXPECT_EQ(machine_->total_steps(), 1) << "the step in progress is committed";
}

TEST_F(StepMachineTest, AStartupDelayEndsWithTheRunAtTheLatest) {
  Start(1, /*total_steps=*/3);
  Connect(1);
  StepFrame frame = Frame(1);
  frame.startup_delay_steps = 1000;
  ASSERT_TRUE(machine_->OnFrame(1, frame, now_).ok());
  StepMachine::FrameResult ask;
  ask.end = true;
  EXPECT_THAT(machine_->OnSummed(1, ask, now_).wake, ElementsAre(1)) << "there is nobody else";
}

}  // namespace
}  // namespace lockstep
