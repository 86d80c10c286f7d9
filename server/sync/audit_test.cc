// Tests steps whose slots are audited: which copies a commit waits for, and the effects of a mismatch.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/testing/sync_replicas_fixture.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class AuditTest : public SyncReplicasFixture {
 protected:
  // Starts a run that audits every slot by default.
  void StartAudited(int64_t slots, config::v1::AuditConfig::OnMismatch on_mismatch = config::v1::AuditConfig::LOG,
                    double fraction = 1) {
    config::v1::AuditConfig audit;
    audit.set_fraction(fraction);
    audit.set_on_mismatch(on_mismatch);
    Start(slots, /*total_steps=*/100, /*snapshot_every_steps=*/0, /*compression=*/{}, audit);
  }
  // Connects this many workers. All of them take part in step 1, because the first one computes step 0 alone.
  void ConnectAll(uint64_t workers) {
    for (uint64_t session = 1; session <= workers; ++session) workers_.push_back(Connect(session));
    for (const auto& worker : workers_) ASSERT_TRUE(worker->Ask().ok());
    for (const auto& worker : workers_) {
      if (!worker->token()) continue;
      ASSERT_TRUE(worker->Push().ok());
    }
    for (const auto& worker : workers_) worker->Drain();
    ASSERT_EQ(commits_.size(), 1u);
    commits_.clear();
    // Put the workers with a token first, because if three workers share one slot, any of them may be the one that
    // waits.
    const auto has_token = [](const auto& worker) { return worker->token().has_value(); };
    std::stable_partition(workers_.begin(), workers_.end(), has_token);
  }
  FrameWorker& worker(size_t number) { return *workers_[number - 1]; }
  v1::AuditStatus Status() const {
    v1::RunStatus status;
    sync_->FillStatus(&status);
    return status.audit();
  }
  void TearDown() override {
    workers_.clear();
    sync_.reset();
  }

  std::vector<std::unique_ptr<FrameWorker>> workers_;
};

TEST_F(AuditTest, TheCommitWaitsForTheSecondCopy) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  for (const size_t number : {1, 2}) {
    ASSERT_EQ(BlockOf(worker(number)), (SlotBlock{0, 1}));
    EXPECT_TRUE(worker(number).token()->digest());
  }
  ASSERT_TRUE(worker(1).Push().ok());
  EXPECT_THAT(commits_, IsEmpty());
  ASSERT_TRUE(worker(2).Push().ok());
  ASSERT_EQ(commits_.size(), 1u);
  EXPECT_EQ(Status().compared(), 1);
  EXPECT_EQ(Status().differences(), 0);
  worker(1).Drain();
  EXPECT_EQ(worker(1).value(0, 0), -1 - 2) << "the second copy was not added";
  EXPECT_TRUE(worker(1).token().has_value());
}

TEST_F(AuditTest, TheSecondCopyIsForAnotherWorker) {
  StartAudited(/*slots=*/2);
  ConnectAll(2);
  EXPECT_EQ(BlockOf(worker(1)), (SlotBlock{0, 1}));
  EXPECT_EQ(BlockOf(worker(2)), (SlotBlock{1, 1}));
  ASSERT_TRUE(worker(1).Push().ok());
  EXPECT_EQ(BlockOf(worker(1)), (SlotBlock{1, 1})) << "of what the other one computes";
  ASSERT_TRUE(worker(1).Push().ok());
  EXPECT_FALSE(worker(1).token().has_value()) << "slot 0 is its own";
  ASSERT_TRUE(worker(2).Push().ok());
  EXPECT_EQ(BlockOf(worker(2)), (SlotBlock{0, 1}));
  EXPECT_THAT(commits_, IsEmpty());
  ASSERT_TRUE(worker(2).Push().ok());
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_EQ(Status().compared(), 2);
}

TEST_F(AuditTest, AWorkerAloneIsNotAudited) {
  StartAudited(/*slots=*/4);
  ConnectAll(1);
  EXPECT_EQ(BlockOf(worker(1)), (SlotBlock{0, 4})) << "in one block, as without";
  EXPECT_FALSE(worker(1).token()->digest());
  ASSERT_TRUE(worker(1).Push().ok());
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_EQ(Status().abandoned(), 0);
}

TEST_F(AuditTest, AWorkerThatGoesEndsTheWait) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  ASSERT_TRUE(worker(1).Push().ok());
  ASSERT_THAT(commits_, IsEmpty());
  workers_.pop_back();
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_EQ(Status().abandoned(), 1);
  worker(1).Drain();
  EXPECT_EQ(worker(1).token()->step(), 2);
}

TEST_F(AuditTest, AFirstWorkerThatGoesIsReplacedByTheSecond) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  workers_.erase(workers_.begin());
  ASSERT_TRUE(worker(1).Push().ok());
  EXPECT_EQ(commits_.size(), 1u) << "nobody is there to compare with";
}

TEST_F(AuditTest, AFrozenWorkerCostsItsLease) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  ASSERT_TRUE(worker(1).Push().ok());
  clock_.Advance(kLease);
  sync_->Tick();
  EXPECT_EQ(commits_.size(), 1u);
}

TEST_F(AuditTest, AWorkerThatHangsIsWaitedForOneLease) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  ASSERT_TRUE(worker(1).Push().ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(commits_, IsEmpty());
    clock_.Advance(kLease / 3);
    sync_->Heartbeat(1);
    sync_->Heartbeat(2);
    sync_->Tick();
  }
  clock_.Advance(absl::Milliseconds(1));
  sync_->Tick();
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_EQ(Status().abandoned(), 1);
}

TEST_F(AuditTest, ADifferenceIsCountedAndNamed) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  worker(2).Err();
  for (const size_t number : {1, 2}) ASSERT_TRUE(worker(number).Push().ok());
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_EQ(Status().differences(), 1);
  EXPECT_EQ(Status().last_difference(),
            "step 1, slot 0: the gradient of big by worker-2 differs from that by worker-1");
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(AuditTest, AThirdWorkerDecides) {
  StartAudited(/*slots=*/1);
  ConnectAll(3);
  EXPECT_FALSE(worker(3).token().has_value()) << "two copies are enough";
  worker(1).Err();
  for (const size_t number : {1, 2}) ASSERT_TRUE(worker(number).Push().ok());
  EXPECT_THAT(commits_, IsEmpty());
  EXPECT_THAT(Status().last_difference(), Not(HasSubstr("outvoted")));
  worker(3).Drain();
  ASSERT_EQ(BlockOf(worker(3)), (SlotBlock{0, 1}));
  ASSERT_TRUE(worker(3).Push().ok());
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_THAT(Status().last_difference(), HasSubstr("; worker-1 is outvoted by worker-2 and worker-3"));
}

TEST_F(AuditTest, ADifferenceFailsTheRunBeforeTheCommit) {
  StartAudited(/*slots=*/1, config::v1::AuditConfig::FAIL);
  ConnectAll(2);
  worker(2).Err();
  for (const size_t number : {1, 2}) ASSERT_TRUE(worker(number).Push().ok());
  EXPECT_THAT(commits_, IsEmpty());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(failures_[0]));
  EXPECT_THAT(std::string(failures_[0].message()), HasSubstr("worker-2 differs from that by worker-1"));
}

TEST_F(AuditTest, AThirdWorkerLeavingFailsTheRun) {
  StartAudited(/*slots=*/1, config::v1::AuditConfig::FAIL);
  ConnectAll(3);
  worker(2).Err();
  for (const size_t number : {1, 2}) ASSERT_TRUE(worker(number).Push().ok());
  EXPECT_THAT(failures_, IsEmpty());
  workers_.pop_back();
  EXPECT_EQ(failures_.size(), 1u);
  EXPECT_THAT(commits_, IsEmpty());
}

TEST_F(AuditTest, BackupsAreComparedWithoutAWait) {
  StartAudited(/*slots=*/1, config::v1::AuditConfig::LOG, /*fraction=*/0);
  ConnectAll(2);
  EXPECT_TRUE(worker(2).token()->digest());
  ASSERT_TRUE(worker(1).Push().ok());
  EXPECT_EQ(commits_.size(), 1u) << "the faster one wins";
  worker(2).Err();
  ASSERT_TRUE(worker(2).Push().ok());
  EXPECT_THAT(worker(2).results(), ElementsAre(v1::CONTRIBUTION_DUPLICATE));
  EXPECT_EQ(Status().differences(), 1) << "a step later";
}

TEST_F(AuditTest, AContributionWithoutItsDigestsIsRefused) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  v1::Token token = *worker(1).token();
  token.set_digest(false);
  EXPECT_TRUE(absl::IsInvalidArgument(worker(1).Push(token)));
}

TEST_F(AuditTest, AnUnwantedContributionNeedsNoDigests) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  v1::Token token = *worker(2).token();
  ASSERT_TRUE(worker(1).Push().ok());
  clock_.Advance(kLease);
  sync_->Tick();
  ASSERT_EQ(commits_.size(), 1u);
  token.set_digest(false);
  EXPECT_TRUE(worker(2).Push(token).ok());
}

TEST_F(AuditTest, TheInputsEndIsNotCompared) {
  StartAudited(/*slots=*/1);
  ConnectAll(2);
  StepFrame frame = worker(1).NewFrame(*worker(1).token());
  frame.end = true;
  frame.end_of_input = true;
  const absl::Status status = worker(1).Send(frame);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(completions_, 1) << "the run ends";
  EXPECT_THAT(commits_, IsEmpty());
}

TEST_F(AuditTest, WithoutAnAuditNoDigestIsAskedFor) {
  Start(/*slots=*/1);
  ConnectAll(2);
  EXPECT_FALSE(worker(1).token()->digest());
  EXPECT_FALSE(worker(2).token()->digest());
  ASSERT_TRUE(worker(1).Push().ok());
  EXPECT_EQ(commits_.size(), 1u);
  v1::RunStatus status;
  sync_->FillStatus(&status);
  EXPECT_FALSE(status.has_audit());
}

}  // namespace
}  // namespace lockstep
