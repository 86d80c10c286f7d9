#include "lockstep/server/sync/policy/deterministic.h"

#include <algorithm>
#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Duration kLease = absl::Seconds(5);

class DeterministicPolicyTest : public ::testing::Test {
 protected:
  void Start(int64_t slots, int64_t workers, const SlotAudit::Options& audit = {}) {
    DeterministicPolicy::Options options;
    options.queue.slots = slots;
    options.queue.lease = kLease;
    options.audit = audit;
    policy_ = std::make_unique<DeterministicPolicy>(options, kStep);
    for (int64_t session = 1; session <= workers; ++session) Join(session);
  }
  void Join(uint64_t session) {
    WorkerState& worker = workers_.emplace(session, WorkerState("worker", kStart)).first->second;
    worker.SetStart(0);
    ASSERT_TRUE(worker.OnAsk().ok());
    policy_->Update(session, worker);
  }
  // Carries out assignments as the machine does. Returns the assigned blocks by session.
  std::map<uint64_t, SlotBlock> Assign(absl::Time now = kStart) {
    std::map<uint64_t, SlotBlock> blocks;
    for (const auto& assignment : policy_->Assign(leases_, now)) {
      leases_.Give(assignment.session, assignment.token, assignment.backup, now);
      WorkerState& worker = workers_.at(assignment.session);
      EXPECT_TRUE(worker.OnAssigned(assignment.token, now));
      EXPECT_TRUE(worker.OnTokenSent(kStep));
      policy_->Update(assignment.session, worker);
      blocks[assignment.session] = assignment.token.block;
    }
    return blocks;
  }

  void Cover(uint64_t session, const StepToken& token, absl::Time now,
             const absl::optional<absl::Duration>& took = absl::nullopt) {
    const auto lease = leases_.Release(session);
    policy_->OnContribution({session, "worker", token, lease ? &*lease : nullptr, /*counts=*/true, took, absl::nullopt},
                            now);
  }
  // Ends expired leases as the machine does. Returns their sessions.
  std::vector<uint64_t> Expire(absl::Time now) {
    std::vector<uint64_t> sessions;
    for (const TokenLease& lease : leases_.Expire(now)) {
      policy_->OnReleased(lease, /*expired=*/true);
      sessions.push_back(lease.session);
    }
    return sessions;
  }
  void Remove(uint64_t session) {
    if (const auto lease = leases_.Remove(session)) policy_->OnReleased(*lease, /*expired=*/false);
    policy_->Remove(session);
  }

  // Sends the worker's contribution to its token, which it took `took` to compute.
  void Contribute(uint64_t session, absl::Time now, absl::Duration took) {
    WorkerState& worker = workers_.at(session);
    const StepToken token = *worker.last_token();
    ASSERT_TRUE(worker.OnContribution(token).ok());
    Cover(session, token, now, took);
    ASSERT_TRUE(worker.OnContributed(v1::CONTRIBUTION_ACCEPTED).ok());
    policy_->Update(session, worker);
  }
  void Commit(int64_t step, absl::Time now) {
    ASSERT_TRUE(policy_->Complete(/*summed=*/true, now));
    policy_->OnCommit(step, leases_);
    leases_.Clear();
  }

  static constexpr int64_t kStep = 3;
  std::map<uint64_t, WorkerState> workers_;
  std::unique_ptr<DeterministicPolicy> policy_;
  TokenLeases leases_{kLease};
};

// Extra blocks and copies in a step do not replace the worker's own block, so the batches it has prepared stay useful.
TEST_F(DeterministicPolicyTest, WorkersKeepTheirBlocksInSpiteOfExtras) {
  Start(/*slots=*/4, /*workers=*/3);
  const absl::Duration took = absl::Milliseconds(1);
  const auto blocks = Assign();
  ASSERT_EQ(blocks.size(), 3u);
  Contribute(1, kStart + took, took);
  EXPECT_EQ(Assign(kStart + took).at(1), (SlotBlock{3, 1}));
  EXPECT_TRUE(workers_.at(1).last_token()->extra);
  for (const int64_t session : {1, 2, 3}) Contribute(session, kStart + 2 * took, took);
  Commit(kStep + 1, kStart + 2 * took);
  EXPECT_EQ(Assign(kStart + 2 * took), blocks);
}

TEST_F(DeterministicPolicyTest, LeasesTheStepInBlocksAndBackups) {
  Start(/*slots=*/4, /*workers=*/2);
  const auto blocks = Assign();
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks.at(1), (SlotBlock{0, 2}));
  EXPECT_EQ(blocks.at(2), (SlotBlock{2, 2}));
  EXPECT_EQ(leases_.Find(2)->token, (StepToken{kStep, {2, 2}}));
  EXPECT_FALSE(leases_.Find(2)->backup);
  EXPECT_TRUE(Assign().empty());
}

TEST_F(DeterministicPolicyTest, AnIdleWorkerCopiesASlowFirstStep) {
  Start(/*slots=*/4, /*workers=*/1);
  ASSERT_EQ(Assign().at(1), (SlotBlock{0, 4}));
  Join(2);
  Join(3);
  EXPECT_TRUE(Assign(kStart + absl::Milliseconds(500)).empty());
  const auto copies = Assign(kStart + absl::Milliseconds(501));
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies.begin()->second, (SlotBlock{0, 4}));
  EXPECT_TRUE(leases_.Find(copies.begin()->first)->backup);
  EXPECT_TRUE(Assign(kStart + absl::Seconds(4)).empty());
}

TEST_F(DeterministicPolicyTest, AfterAContributionOnlySlowBlocksAreCopied) {
  Start(/*slots=*/4, /*workers=*/2);
  ASSERT_EQ(Assign().size(), 2u);
  Contribute(1, kStart + absl::Seconds(1), absl::Seconds(1));
  EXPECT_TRUE(Assign(kStart + absl::Seconds(4)).empty());
  EXPECT_EQ(Assign(kStart + absl::Milliseconds(4001)).at(1), (SlotBlock{2, 2}));
}

TEST_F(DeterministicPolicyTest, MoreWorkersThanSlotsComputeBackups) {
  Start(2, 5);
  const auto blocks = Assign();
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks.at(3), (SlotBlock{0, 1}));
  EXPECT_TRUE(leases_.Find(4)->backup);
  EXPECT_EQ(blocks.count(5), 0u) << "a third copy helps nobody";
}

TEST_F(DeterministicPolicyTest, AnEndedLeaseGivesTheBlockToAnother) {
  Start(1, 4);
  ASSERT_EQ(Assign().size(), 2u);
  leases_.Renew(2, kStart + absl::Seconds(3));
  ASSERT_EQ(Expire(kStart + kLease), std::vector<uint64_t>{1});
  EXPECT_EQ(Assign(kStart + kLease).count(3), 1u);
}

TEST_F(DeterministicPolicyTest, OneThatIsGoneFreesItsBlock) {
  Start(1, 3);
  ASSERT_EQ(Assign().size(), 2u);
  Remove(1);
  const auto blocks = Assign();
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks.count(3), 1u);
}

TEST_F(DeterministicPolicyTest, WhatIsCoveredIsGivenToNobody) {
  Start(1, 2);
  Cover(1, {kStep, {0, 1}}, kStart);
  EXPECT_TRUE(Assign().empty());
  policy_->OnCommit(kStep + 1, leases_);
  EXPECT_EQ(Assign().count(1), 1u);
  EXPECT_EQ(leases_.Find(1)->token.step, kStep + 1);
}

TEST_F(DeterministicPolicyTest, ASilentWorkerIsTheLastChoice) {
  Start(1, 2);
  ASSERT_EQ(Assign().size(), 2u);
  ASSERT_EQ(Expire(kStart + kLease).size(), 2u);
  for (auto& entry : workers_) {
    ASSERT_TRUE(entry.second.OnLeaseEnded());
    ASSERT_TRUE(entry.second.OnAsk().ok());
    if (entry.first == 2) entry.second.OnHeard(kStart + kLease);
    policy_->Update(entry.first, entry.second);
  }
  EXPECT_EQ(Assign(kStart + kLease).count(2), 1u);
  Remove(2);
  EXPECT_EQ(Assign(kStart + kLease).count(1), 1u);
}

TEST_F(DeterministicPolicyTest, ADelayedWorkerReplacesASilentStarted) {
  Start(/*slots=*/1, /*workers=*/1);
  ASSERT_EQ(Assign().count(1), 1u);
  WorkerState& delayed = workers_.emplace(2, WorkerState("delayed", kStart)).first->second;
  delayed.SetStart(kStep + 100);
  ASSERT_TRUE(delayed.OnAsk().ok());
  policy_->Update(2, delayed);
  EXPECT_TRUE(Assign(kStart + kLease - absl::Seconds(1)).empty());
  ASSERT_EQ(Expire(kStart + kLease).size(), 1u);
  ASSERT_TRUE(workers_.at(1).OnLeaseEnded());
  policy_->Update(1, workers_.at(1));
  EXPECT_EQ(Assign(kStart + kLease).count(2), 1u);
}

TEST_F(DeterministicPolicyTest, WhenAllAreSilentEachGetsItsShare) {
  Start(2, 2);
  ASSERT_EQ(Assign().size(), 2u);
  ASSERT_EQ(Expire(kStart + kLease).size(), 2u);
  for (auto& entry : workers_) {
    ASSERT_TRUE(entry.second.OnLeaseEnded());
    ASSERT_TRUE(entry.second.OnAsk().ok());
    policy_->Update(entry.first, entry.second);
  }
  const auto blocks = Assign(kStart + kLease);
  ASSERT_EQ(blocks.size(), 2u);
  for (const auto& entry : blocks) EXPECT_EQ(entry.second.count, 1);
}

// The second worker has sent enough for the step to be committed, but has not ended its contribution.
TEST_F(DeterministicPolicyTest, AnUnfinishedContributionDoesNotCount) {
  Start(/*slots=*/4, /*workers=*/2);
  ASSERT_EQ(Assign().size(), 2u);
  Contribute(1, kStart, absl::Milliseconds(10));
  WorkerState& hung = workers_.at(2);
  ASSERT_TRUE(hung.OnContribution(*hung.last_token()).ok());
  policy_->Update(2, hung);
  Cover(2, *hung.last_token(), kStart);
  Commit(kStep + 1, kStart);
  const auto computes = [this](const SlotBlock& block) {
    ASSERT_EQ(Assign().at(1), block);
    Contribute(1, kStart, absl::Milliseconds(10));
  };
  computes({0, 2});  // the other one may be slightly late
  computes({2, 2});
  Commit(kStep + 2, kStart);
  EXPECT_EQ(Assign().at(1), (SlotBlock{0, 4}));
}

// Two workers, of which the second keeps its token of the previous step while its heartbeats continue.
class BusyWithAnEarlierStepTest : public DeterministicPolicyTest {
 protected:
  static constexpr absl::Duration kTook = absl::Milliseconds(10);

  void StartTwo(absl::Duration first_takes = kTook) {
    Start(/*slots=*/1, /*workers=*/2);
    ASSERT_EQ(Assign().size(), 2u);
    now_ += kTook;
    Contribute(1, now_, first_takes);
    Contribute(2, now_, kTook);
    Commit(kStep + 1, now_);
    ASSERT_EQ(Assign(now_).size(), 2u);
  }

  // The fast second worker sends enough for the step to be committed, while the slow first worker waits for a token.
  void CommitBeforeTheEnd() {
    StartTwo(/*first_takes=*/5 * kTook);
    ASSERT_TRUE(workers_.at(1).OnAsk().ok());
    policy_->Update(1, workers_.at(1));
    WorkerState& fast = workers_.at(2);
    ASSERT_TRUE(fast.OnContribution(*fast.last_token()).ok());
    policy_->Update(2, fast);
    now_ += kTook;
    Cover(2, *fast.last_token(), now_);
    Commit(kStep + 2, now_);
  }

  absl::Time now_ = kStart;
};

TEST_F(BusyWithAnEarlierStepTest, AWorkerInDebtComputesAStepThatNobodyElseDoes) {
  StartTwo();
  WorkerState& second = workers_.at(2);
  const StepToken token = *second.last_token();
  ASSERT_TRUE(second.OnAsk().ok());
  policy_->Update(2, second);
  // The step takes a hundred times as long as usual, while the second worker waits for the first.
  now_ += 100 * kTook;
  Contribute(1, now_, kTook);
  Commit(kStep + 2, now_);
  ASSERT_TRUE(second.OnAssigned(token, now_) && second.OnTokenSent(kStep));
  policy_->Update(2, second);
  EXPECT_TRUE(Assign(now_).empty()) << "the other one may be a moment late";
  now_ += 2 * kTook;
  EXPECT_EQ(Assign(now_).count(1), 1u);
}

TEST_F(BusyWithAnEarlierStepTest, AStepThatNobodyWaitedForIsNobodysDebt) {
  StartTwo();
  now_ += 100 * kTook;
  Contribute(1, now_, kTook);
  Commit(kStep + 2, now_);
  EXPECT_EQ(Assign(now_).count(1), 1u);
}

TEST_F(BusyWithAnEarlierStepTest, ASlowWorkerWithoutDebtComputesTheStepAtOnce) {
  StartTwo(/*first_takes=*/5 * kTook);
  now_ += kTook;
  Contribute(1, now_, 5 * kTook);
  Commit(kStep + 2, now_);
  EXPECT_EQ(Assign(now_).count(1), 1u);
}

TEST_F(BusyWithAnEarlierStepTest, ASlowWorkerWaitsForTheEndOfAFastOne) {
  CommitBeforeTheEnd();
  EXPECT_TRUE(Assign(now_).empty());
  WorkerState& fast = workers_.at(2);
  policy_->OnContribution({2, "worker", *fast.last_token(), nullptr, /*counts=*/false, kTook, absl::nullopt}, now_);
  ASSERT_TRUE(fast.OnContributed(v1::CONTRIBUTION_ACCEPTED).ok());
  policy_->Update(2, fast);
  EXPECT_EQ(Assign(now_).size(), 2u);
  EXPECT_FALSE(leases_.Find(2)->backup);
  EXPECT_TRUE(leases_.Find(1)->backup);
}

TEST_F(BusyWithAnEarlierStepTest, ASlowWorkerReplacesAFastOneWithoutEnd) {
  CommitBeforeTheEnd();
  EXPECT_TRUE(Assign(now_).empty());
  now_ += 2 * kTook;
  EXPECT_EQ(Assign(now_).count(1), 1u);
}

TEST_F(BusyWithAnEarlierStepTest, ASlowWorkerReplacesOneThatHasLeft) {
  CommitBeforeTheEnd();
  EXPECT_TRUE(Assign(now_).empty());
  Remove(2);
  EXPECT_EQ(Assign(now_).count(1), 1u);
}

TEST_F(DeterministicPolicyTest, AuditedSlotsAreLeasedAloneAndTwice) {
  SlotAudit::Options audit;
  audit.enabled = true;
  audit.fraction = 0.2;
  Start(/*slots=*/8, /*workers=*/8, audit);
  audit.slots = 8;
  const std::vector<int64_t> audited = SlotAudit(audit, kStep).slots();
  ASSERT_TRUE(!audited.empty() && audited.size() < 4) << audited.size();
  std::vector<int64_t> with_digest;
  for (const StepPolicy::Assignment& assignment : policy_->Assign(leases_, kStart)) {
    EXPECT_EQ(assignment.token.block.count, 1);
    if (assignment.token.digest) with_digest.push_back(assignment.token.block.first);
  }
  // With eight workers for eight slots, none is left for a second copy.
  std::sort(with_digest.begin(), with_digest.end());
  EXPECT_EQ(with_digest, audited);
  EXPECT_FALSE(policy_->Complete(/*summed=*/true, kStart));
  EXPECT_TRUE(policy_->Complete(/*summed=*/true, kStart + kLease));
}

TEST_F(DeterministicPolicyTest, OtherSlotsAreLeasedInBlocksBesideAuditedOnes) {
  SlotAudit::Options audit;
  audit.enabled = true;
  audit.fraction = 0.2;
  Start(/*slots=*/8, /*workers=*/2, audit);
  audit.slots = 8;
  const std::vector<int64_t> audited = SlotAudit(audit, kStep).slots();
  for (const auto& entry : Assign()) {
    const SlotBlock& block = entry.second;
    const auto inside = std::count_if(audited.begin(), audited.end(),
                                      [&](int64_t slot) { return slot >= block.first && slot < block.end(); });
    EXPECT_TRUE(block.count == 1 || inside == 0) << block.ToString();
  }
}

TEST_F(DeterministicPolicyTest, AContributionCountsDuringItsStep) {
  Start(1, 1);
  EXPECT_EQ(policy_->Judge({kStep, {0, 1}}), v1::CONTRIBUTION_ACCEPTED);
  EXPECT_EQ(policy_->Judge({kStep - 1, {0, 1}}), v1::CONTRIBUTION_DUPLICATE);
  EXPECT_FALSE(policy_->Complete(/*summed=*/false, kStart));
  EXPECT_TRUE(policy_->Complete(/*summed=*/true, kStart));
}

}  // namespace
}  // namespace lockstep
