#include "lockstep/server/sync/policy/worker_ledger.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Duration kPatience = absl::Seconds(5);

class WorkerLedgerTest : public ::testing::Test {
 protected:
  // Adds a worker that waits for a token and takes part from `start` on.
  void AddWaiting(uint64_t session, int64_t start = 0) {
    WorkerState& worker = workers_.emplace(session, WorkerState("worker", now_)).first->second;
    worker.SetStart(start);
    ASSERT_TRUE(worker.OnAsk().ok());
    ledger_.Update(session, worker);
  }
  // Gives the worker a token for a slot of `step`, and sends it.
  void Give(uint64_t session, int64_t step) {
    ASSERT_TRUE(worker(session).OnAssigned({step, {0, 1}}, now_));
    ASSERT_TRUE(worker(session).OnTokenSent(0));
    ledger_.Update(session, worker(session));
  }
  void Contribute(uint64_t session) {
    ASSERT_TRUE(worker(session).OnContribution(*worker(session).last_token()).ok());
    ASSERT_TRUE(worker(session).OnContributed(v1::CONTRIBUTION_ACCEPTED).ok());
    ledger_.Update(session, worker(session));
  }
  WorkerState& worker(uint64_t session) { return workers_.at(session); }
  // Takes all waiting workers of a rank, and returns them in order.
  std::string TakeAll(WorkerLedger::Rank rank = WorkerLedger::kFull) {
    std::string order;
    while (ledger_.Waits(rank)) order += std::to_string(ledger_.TakeNext(rank).session) + " ";
    return order;
  }

  absl::Time now_ = kStart;
  std::map<uint64_t, WorkerState> workers_;
  WorkerLedger ledger_{/*slots=*/4, kPatience, /*step=*/0};
};

TEST_F(WorkerLedgerTest, WorkersWaitInTheOrderOfTheirSessions) {
  for (const uint64_t session : {3, 1, 2}) AddWaiting(session);
  EXPECT_EQ(ledger_.CountAll(now_), 3);
  EXPECT_EQ(TakeAll(), "1 2 3 ");
  EXPECT_EQ(TakeAll(), "") << "each is taken once";
  ledger_.Update(2, worker(2));
  EXPECT_EQ(TakeAll(), "2 ") << "it did not get a token";
}

TEST_F(WorkerLedgerTest, ThoseThatContributedToTheNewestStepComeFirst) {
  for (const uint64_t session : {1, 2, 3}) AddWaiting(session);
  Give(3, 4);
  Give(2, 3);
  Contribute(2);
  Contribute(3);
  EXPECT_EQ(TakeAll(), "3 2 1 ");
}

TEST_F(WorkerLedgerTest, TheNextComesWithTheBlockThatItHadLast) {
  AddWaiting(1);
  Give(1, 0);
  Contribute(1);
  EXPECT_EQ(ledger_.TakeNext(WorkerLedger::kFull).last_block, (SlotBlock{0, 1}));
}

TEST_F(WorkerLedgerTest, OneThatIsNotHeardOfWhileItComputesTakesNoPart) {
  AddWaiting(1);
  AddWaiting(2);
  Give(1, 0);
  EXPECT_EQ(ledger_.CountAll(kStart + kPatience - absl::Seconds(1)), 2);
  worker(1).OnHeard(kStart + absl::Seconds(3));
  ledger_.Update(1, worker(1));
  EXPECT_EQ(ledger_.CountAll(kStart + kPatience), 2) << "one is alive, the other waits, as long as it may be";
  EXPECT_EQ(ledger_.CountAll(kStart + kPatience + absl::Seconds(3)), 1);
  worker(1).OnHeard(kStart + absl::Seconds(20));
  ledger_.Update(1, worker(1));
  EXPECT_EQ(ledger_.CountAll(kStart + absl::Seconds(20)), 2);
}

TEST_F(WorkerLedgerTest, SilentOnesAreKeptApart) {
  AddWaiting(1);
  AddWaiting(2);
  ASSERT_TRUE(worker(1).OnAssigned({0, {0, 1}}, now_));
  ASSERT_TRUE(worker(1).OnLeaseEnded());
  ledger_.Update(1, worker(1));
  EXPECT_EQ(ledger_.CountAll(now_), 1);
  EXPECT_EQ(ledger_.Count(WorkerLedger::kSilent, now_), 1);
  EXPECT_EQ(TakeAll(), "2 ");
  EXPECT_EQ(TakeAll(WorkerLedger::kSilent), "1 ");
}

TEST_F(WorkerLedgerTest, ADelayedWorkerWaitsForItsStep) {
  AddWaiting(1);
  AddWaiting(2, 3);
  AddWaiting(3, 5);
  EXPECT_EQ(ledger_.CountAll(now_), 1);
  ledger_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "1 ") << "not all are delayed";
  ledger_.Update(1, worker(1));
  ledger_.SetStep(3);
  EXPECT_EQ(ledger_.CountAll(now_), 2);
  EXPECT_EQ(TakeAll(), "1 2 ");
  ledger_.SetStep(9);
  EXPECT_EQ(TakeAll(), "3 ");
}

TEST_F(WorkerLedgerTest, StartsTheFirstWaitingIfAllAreDelayed) {
  workers_.emplace(1, WorkerState("connected", now_));
  ledger_.Update(1, worker(1));
  ledger_.StartOneIfNobodyTakesPart(now_);
  AddWaiting(3, 9);
  AddWaiting(2, 9);
  ledger_.StartOneIfNobodyTakesPart(now_);
  ledger_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "2 ");
  ledger_.Update(2, worker(2));
  EXPECT_EQ(TakeAll(), "2 ");
  ledger_.Remove(2);
  ledger_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "3 ");
}

TEST_F(WorkerLedgerTest, ADelayedWorkerReplacesASilentOne) {
  AddWaiting(1);
  Give(1, 0);
  AddWaiting(2, 9);
  now_ = kStart + kPatience - absl::Seconds(1);
  ledger_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "") << "the first is computing";
  now_ = kStart + kPatience;
  ledger_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "2 ");
  AddWaiting(3, 9);
  ledger_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "") << "one is enough";
}

TEST_F(WorkerLedgerTest, ADelayedWorkerTakesOverFromASilentOne) {
  AddWaiting(1);
  ASSERT_TRUE(worker(1).OnAssigned({0, {0, 1}}, now_));
  ASSERT_TRUE(worker(1).OnLeaseEnded());
  ledger_.Update(1, worker(1));
  AddWaiting(2, 9);
  ledger_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(ledger_.CountAll(now_), 1);
  EXPECT_EQ(TakeAll(), "2 ");
}

TEST_F(WorkerLedgerTest, ADelayedWorkerTakesOverFromOneThatHasLeft) {
  AddWaiting(1);
  AddWaiting(2, 9);
  worker(1).OnLeave();
  ledger_.Update(1, worker(1));
  ledger_.StartOneIfNobodyTakesPart(now_);
  EXPECT_EQ(TakeAll(), "2 ");
}

TEST_F(WorkerLedgerTest, WhoHasLeftOrIsGoneTakesNoPart) {
  AddWaiting(1);
  AddWaiting(2);
  worker(1).OnLeave();
  ledger_.Update(1, worker(1));
  ledger_.Remove(2);
  ledger_.Remove(7);
  EXPECT_EQ(ledger_.CountAll(now_), 0);
  EXPECT_EQ(TakeAll(), "");
}

TEST_F(WorkerLedgerTest, OneThatIsPassedCountsAgainWhenItWaits) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  for (const uint64_t session : {1, 2}) Give(session, 0);
  EXPECT_TRUE(ledger_.OnPassed({2}).empty());
  EXPECT_EQ(ledger_.CountAll(now_), 2) << "it may be a moment late";
  EXPECT_EQ(ledger_.OnPassed({}), WorkerLedger::Sessions{2});
  EXPECT_EQ(ledger_.CountAll(now_), 1);
  ledger_.OnLeaseEnded(1);
  EXPECT_EQ(ledger_.CountAll(now_), 0);
  EXPECT_EQ(ledger_.CountAlive(now_), 2) << "both are heard of";
  for (const uint64_t session : {1, 2}) Contribute(session);
  EXPECT_EQ(ledger_.CountAll(now_), 2);
}

TEST_F(WorkerLedgerTest, ASlowOneThatIsPassedDoesNotCount) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  for (const uint64_t session : {1, 2}) Give(session, 0);
  ledger_.OnContributed(1, 1, absl::Milliseconds(10));
  ledger_.OnContributed(2, 1, absl::Milliseconds(100));
  EXPECT_EQ(ledger_.Count(WorkerLedger::kBackup, now_), 1);
  ledger_.OnPassed({2});
  EXPECT_EQ(ledger_.CountAll(now_), 1);
}

TEST_F(WorkerLedgerTest, ASlowOneTakesWhatItEndsBeforeTheOthersWould) {
  for (const uint64_t session : {1, 2, 3}) AddWaiting(session);
  ledger_.OnContributed(1, 2, absl::Milliseconds(20));
  ledger_.OnContributed(2, 1, absl::Milliseconds(12));
  ledger_.OnContributed(3, 1, absl::Milliseconds(29));
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 2) << "within a quarter of the fastest";
  EXPECT_EQ(ledger_.Count(WorkerLedger::kPart, now_), 0) << "the others make the step in 30 ms";
  ledger_.Remove(2);
  ASSERT_EQ(ledger_.Count(WorkerLedger::kPart, now_), 1);
  EXPECT_EQ(ledger_.SlotsInTime(3, absl::ZeroDuration()), 1) << "29 ms of 40, in which the other makes all";
  EXPECT_EQ(ledger_.SlotsInTime(3, absl::Milliseconds(10)), 0);
  ledger_.Remove(1);
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 1) << "it is the fastest now";
}

TEST_F(WorkerLedgerTest, OneThatCostsStepsIsNotTrustedUntilTheyArePaid) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  for (const uint64_t session : {1, 2}) ledger_.OnContributed(session, 1, absl::Milliseconds(10));
  ASSERT_EQ(ledger_.CountTrusted(now_), 2);
  // A worker alone would take 40 ms for a step.
  for (const uint64_t session : {1, 2}) ledger_.OnStep(session, absl::Milliseconds(160), session == 2, /*copies=*/0);
  EXPECT_EQ(ledger_.Count(WorkerLedger::kBackup, now_), 1) << "it has cost three steps, and was granted two";
  EXPECT_EQ(ledger_.CountTrusted(now_), 1);
  EXPECT_EQ(ledger_.CountAlive(now_), 2);
  EXPECT_EQ(TakeAll(), "1 ");
  ledger_.SetStep(30);
  ledger_.OnContributed(1, 1, absl::Milliseconds(10));
  EXPECT_EQ(ledger_.CountTrusted(now_), 1);
  ledger_.SetStep(34);
  ledger_.OnContributed(1, 1, absl::Milliseconds(10));
  EXPECT_EQ(ledger_.CountTrusted(now_), 2);
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 2);
}

TEST_F(WorkerLedgerTest, OneOfManyThatCostsStepsIsNotTrusted) {
  for (uint64_t session = 1; session <= 50; ++session) {
    AddWaiting(session);
    ledger_.OnContributed(session, 1, absl::Milliseconds(10));
  }
  ASSERT_EQ(ledger_.CountTrusted(now_), 50);
  ledger_.OnStep(7, absl::Milliseconds(160), /*last=*/true, /*copies=*/0);
  EXPECT_EQ(ledger_.CountTrusted(now_), 49) << "the others make the step in 10 ms";
}

TEST_F(WorkerLedgerTest, GainsPayForALongStepLater) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  for (const uint64_t session : {1, 2}) ledger_.OnContributed(session, 1, absl::Milliseconds(10));
  ASSERT_EQ(ledger_.CountTrusted(now_), 2);
  for (int i = 0; i < 4; ++i) ledger_.OnStep(2, absl::Milliseconds(20), /*last=*/true, 0);
  ledger_.OnStep(2, absl::Milliseconds(160), /*last=*/true, 0);
  EXPECT_EQ(ledger_.CountTrusted(now_), 2);
}

TEST_F(WorkerLedgerTest, GoodCreditOutlastsAFewSlowSlots) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  for (const uint64_t session : {1, 2}) ledger_.OnContributed(session, 1, absl::Milliseconds(10));
  ASSERT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 2);
  for (int i = 0; i < 8; ++i) ledger_.OnStep(2, absl::Milliseconds(20), /*last=*/true, 0);
  for (int i = 0; i < 31; ++i) ledger_.OnContributed(2, 1, absl::Milliseconds(40));
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 2);
  for (int i = 0; i < 4; ++i) ledger_.OnContributed(2, 1, absl::Milliseconds(40));
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 1) << "32 in a row are no chance";
  for (int i = 0; i < 200; ++i) ledger_.OnContributed(2, 1, absl::Milliseconds(40));
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 1);
  for (int i = 0; i < 40; ++i) ledger_.OnContributed(2, 1, absl::Milliseconds(40));
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 2) << "it may try again";
}

TEST_F(WorkerLedgerTest, ASlowFirstSlotIsSoonForgotten) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  ledger_.OnContributed(1, 1, absl::Milliseconds(10));
  ledger_.OnContributed(2, 1, absl::Milliseconds(200));
  ASSERT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 1);
  for (int i = 0; i < 40; ++i) ledger_.OnContributed(2, 1, absl::Milliseconds(10));
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 2);
}

TEST_F(WorkerLedgerTest, WithoutGoodCreditASlowOneIsSlowAtOnce) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  ledger_.OnContributed(1, 1, absl::Milliseconds(10));
  ledger_.OnContributed(2, 1, absl::Milliseconds(100));
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 1);
}

TEST_F(WorkerLedgerTest, ASlowOneThatComesBackIsStillSlow) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  ledger_.OnContributed(1, 1, absl::Milliseconds(10));
  for (int i = 0; i < 10; ++i) {
    ledger_.OnContributed(2, 1, absl::Milliseconds(100));
    EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 1) << "life " << i;
    ledger_.Remove(2);
    workers_.erase(2);
    AddWaiting(2);
    EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 1) << "life " << i;
  }
}

TEST_F(WorkerLedgerTest, DebtOutlastsAReconnection) {
  for (const uint64_t session : {1, 2}) AddWaiting(session);
  for (const uint64_t session : {1, 2}) ledger_.OnContributed(session, 1, absl::Milliseconds(10));
  ASSERT_EQ(ledger_.CountTrusted(now_), 2);
  ledger_.OnStep(2, absl::Milliseconds(160), /*last=*/true, /*copies=*/0);
  ledger_.Remove(2);
  workers_.erase(2);
  AddWaiting(2);
  EXPECT_EQ(ledger_.CountTrusted(now_), 1) << "it has cost three steps, and was granted two";
}

TEST_F(WorkerLedgerTest, ForgetsTheOldestOfManyThatAreGone) {
  AddWaiting(1);
  ledger_.OnContributed(1, 1, absl::Milliseconds(10));
  AddWaiting(2);
  ledger_.OnContributed(2, 1, absl::Milliseconds(100));
  ASSERT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 1);
  ledger_.Remove(2);
  for (uint64_t session = 3; session < 3 + WorkerLedger::kMostGone; ++session) {
    AddWaiting(session);
    ledger_.Remove(session);
  }
  workers_.erase(2);
  AddWaiting(2);
  EXPECT_EQ(ledger_.Count(WorkerLedger::kFull, now_), 2) << "it counts as new";
}

}  // namespace
}  // namespace lockstep
