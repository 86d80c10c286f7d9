#include "lockstep/server/sync/policy/worker_roster.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Duration kPatience = absl::Seconds(5);

class WorkerRosterTest : public ::testing::Test {
 protected:
  // A worker that waits for a token, and takes part from `start` on.
  void AddWaiting(uint64_t session, int64_t start = 0) {
    WorkerState& worker = workers_.emplace(session, WorkerState("worker", now_)).first->second;
    worker.SetStart(start);
    ASSERT_TRUE(worker.OnAsk().ok());
    roster_.Update(session, worker);
  }
  // It gets a token for a slot of `step`, and has it.
  void Give(uint64_t session, int64_t step) {
    ASSERT_TRUE(worker(session).OnAssigned({step, {0, 1}}, now_));
    ASSERT_TRUE(worker(session).OnTokenSent());
    roster_.Update(session, worker(session));
  }
  void Contribute(uint64_t session) {
    ASSERT_TRUE(worker(session).OnContribution(*worker(session).last_token()).ok());
    ASSERT_TRUE(worker(session).OnContributed(v1::CONTRIBUTION_ACCEPTED).ok());
    roster_.Update(session, worker(session));
  }
  WorkerState& worker(uint64_t session) { return workers_.at(session); }
  // All that wait, in order.
  std::string TakeAll(bool silent = false) {
    std::string order;
    while (const auto next = roster_.TakeNext(silent)) order += std::to_string(next->session) + " ";
    return order;
  }

  absl::Time now_ = kStart;
  std::map<uint64_t, WorkerState> workers_;
  WorkerRoster roster_{kPatience, /*step=*/0};
};

TEST_F(WorkerRosterTest, WorkersWaitInTheOrderOfTheirSessions) {
  for (const uint64_t session : {3, 1, 2}) AddWaiting(session);
  EXPECT_EQ(roster_.Count(false, now_), 3);
  EXPECT_EQ(TakeAll(), "1 2 3 ");
  EXPECT_EQ(TakeAll(), "") << "each is taken once";
  roster_.Update(2, worker(2));
  EXPECT_EQ(TakeAll(), "2 ") << "it did not get a token";
}

TEST_F(WorkerRosterTest, ThoseThatContributedToTheNewestStepComeFirst) {
  for (const uint64_t session : {1, 2, 3}) AddWaiting(session);
  Give(3, 4);
  Give(2, 3);
  Contribute(2);
  Contribute(3);
  EXPECT_EQ(TakeAll(), "3 2 1 ");
}

TEST_F(WorkerRosterTest, TheNextComesWithTheBlockThatItHadLast) {
  AddWaiting(1);
  Give(1, 0);
  Contribute(1);
  EXPECT_EQ(roster_.TakeNext(false)->last_block, (SlotBlock{0, 1}));
}

TEST_F(WorkerRosterTest, OneThatIsNotHeardOfWhileItComputesTakesNoPart) {
  AddWaiting(1);
  AddWaiting(2);
  Give(1, 0);
  EXPECT_EQ(roster_.Count(false, kStart + kPatience - absl::Seconds(1)), 2);
  worker(1).OnHeard(kStart + absl::Seconds(3));
  roster_.Update(1, worker(1));
  EXPECT_EQ(roster_.Count(false, kStart + kPatience), 2) << "one is alive, the other waits, as long as it may be";
  EXPECT_EQ(roster_.Count(false, kStart + kPatience + absl::Seconds(3)), 1);
  worker(1).OnHeard(kStart + absl::Seconds(20));
  roster_.Update(1, worker(1));
  EXPECT_EQ(roster_.Count(false, kStart + absl::Seconds(20)), 2);
}

TEST_F(WorkerRosterTest, SilentOnesAreKeptApart) {
  AddWaiting(1);
  AddWaiting(2);
  ASSERT_TRUE(worker(1).OnAssigned({0, {0, 1}}, now_));
  ASSERT_TRUE(worker(1).OnLeaseEnded());
  roster_.Update(1, worker(1));
  EXPECT_EQ(roster_.Count(false, now_), 1);
  EXPECT_EQ(roster_.Count(true, now_), 1);
  EXPECT_EQ(TakeAll(false), "2 ");
  EXPECT_EQ(TakeAll(true), "1 ");
}

TEST_F(WorkerRosterTest, ADelayedWorkerWaitsForItsStep) {
  AddWaiting(1);
  AddWaiting(2, 3);
  AddWaiting(3, 5);
  EXPECT_EQ(roster_.Count(false, now_), 1);
  roster_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "1 ") << "not all are delayed";
  roster_.Update(1, worker(1));
  roster_.SetStep(3);
  EXPECT_EQ(roster_.Count(false, now_), 2);
  EXPECT_EQ(TakeAll(), "1 2 ");
  roster_.SetStep(9);
  EXPECT_EQ(TakeAll(), "3 ");
}

TEST_F(WorkerRosterTest, WhenAllAreDelayedTheFirstThatWaitsIsStartedForGood) {
  workers_.emplace(1, WorkerState("connected", now_));
  roster_.Update(1, worker(1));
  roster_.StartOneIfNobodyTakesPart(now_);
  AddWaiting(3, 9);
  AddWaiting(2, 9);
  roster_.StartOneIfNobodyTakesPart(now_);
  roster_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "2 ");
  roster_.Update(2, worker(2));
  EXPECT_EQ(TakeAll(), "2 ");
  roster_.Remove(2);
  roster_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "3 ");
}

TEST_F(WorkerRosterTest, ADelayedWorkerTakesOverFromOneThatIsNotHeardOf) {
  AddWaiting(1);
  Give(1, 0);
  AddWaiting(2, 9);
  now_ = kStart + kPatience - absl::Seconds(1);
  roster_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "") << "the first is computing";
  now_ = kStart + kPatience;
  roster_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "2 ");
  AddWaiting(3, 9);
  roster_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "") << "one is enough";
}

TEST_F(WorkerRosterTest, ADelayedWorkerTakesOverFromASilentOne) {
  AddWaiting(1);
  ASSERT_TRUE(worker(1).OnAssigned({0, {0, 1}}, now_));
  ASSERT_TRUE(worker(1).OnLeaseEnded());
  roster_.Update(1, worker(1));
  AddWaiting(2, 9);
  roster_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(roster_.Count(/*silent=*/false, now_), 1);
  EXPECT_EQ(TakeAll(), "2 ");
}

TEST_F(WorkerRosterTest, ADelayedWorkerTakesOverFromOneThatHasLeft) {
  AddWaiting(1);
  AddWaiting(2, 9);
  worker(1).OnLeave();
  roster_.Update(1, worker(1));
  roster_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "2 ");
}

TEST_F(WorkerRosterTest, WhoHasLeftOrIsGoneTakesNoPart) {
  AddWaiting(1);
  AddWaiting(2);
  worker(1).OnLeave();
  roster_.Update(1, worker(1));
  roster_.Remove(2);
  roster_.Remove(7);
  EXPECT_EQ(roster_.Count(false, now_), 0);
  EXPECT_EQ(TakeAll(), "");
}

}  // namespace
}  // namespace lockstep
