// Tests which workers get which tokens, and the results of contributions.
#include "lockstep/server/sync/sync_replicas.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/step/partial_sums.h"
#include "lockstep/server/sync/testing/arrivals_policy.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/server/sync/testing/sync_replicas_fixture.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using SyncReplicasTest = SyncReplicasFixture;

TEST_F(SyncReplicasTest, AStepIsAppliedWhenAllSlotsAreIn) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  EXPECT_EQ(a->values_step(), 0);
  EXPECT_EQ(BlockOf(*a), (SlotBlock{0, 2})) << "the only one";
  ASSERT_TRUE(b->Ask().ok());
  EXPECT_FALSE(b->token()) << "all slots are given";
  ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(a->results(), ElementsAre(v1::CONTRIBUTION_ACCEPTED));
  EXPECT_EQ(BlockOf(*a), (SlotBlock{0, 1}));
  b->Drain();
  EXPECT_EQ(BlockOf(*b), (SlotBlock{1, 1}));
  for (const FrameWorker* worker : {a.get(), b.get()}) {
    EXPECT_EQ(worker->token()->step(), 1);
    EXPECT_EQ(worker->values_step(), 1);
    EXPECT_EQ(worker->value(0, 2), AfterStep0(2));
    EXPECT_EQ(worker->value(2, 65539), AfterStep0(2));
    EXPECT_EQ(worker->value(1, 1), 1) << "update values are folded in slot order";
  }
  ASSERT_EQ(commits_.size(), 1u);
  EXPECT_EQ(commits_[0].commit.step(), 1);
  EXPECT_EQ(commits_[0].commit.mean_loss(), 1.5);
}

TEST_F(SyncReplicasTest, TokensBringWhatWorkersComputeWith) {
  Start(/*slots=*/2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  sync_->HoldForChange();
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(b->Push().ok());
  v1::SessionState::Settings changed;
  changed.mutable_optimizer()->mutable_sgd();
  v1::GradientSettings settings;
  settings.set_batch_size(5);
  settings.set_changes(1);
  ASSERT_TRUE(sync_->ChangeSettings(changed, settings).ok());
  settings.set_batch_size(6);
  settings.set_changes(3);
  ASSERT_TRUE(sync_->ChangeSettings(changed, settings).ok());
  ASSERT_TRUE(sync_->ChangeSettings(changed).ok()) << "not for workers";
  sync_->ReleaseAfterChange();
  for (FrameWorker* worker : {a.get(), b.get()}) {
    EXPECT_TRUE(worker->closed().ok()) << worker->closed();
    worker->Drain();
    ASSERT_TRUE(worker->token());
    ASSERT_TRUE(worker->settings());
    EXPECT_EQ(worker->settings()->batch_size(), 6);
  }
  settings.set_batch_size(7);
  settings.set_changes(4);
  sync_->HoldForChange();
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(b->Push().ok());
  ASSERT_TRUE(sync_->ChangeSettings(changed, settings).ok());
  sync_->ReleaseAfterChange();
  a->Drain();
  EXPECT_EQ(a->settings()->batch_size(), 7);
  EXPECT_EQ(b->settings()->batch_size(), 6) << "with its next token";
}

TEST_F(SyncReplicasTest, AStreamGetsWhatChangedSinceItsSession) {
  Start(1);
  v1::SessionState::Settings changed;
  changed.mutable_optimizer()->mutable_sgd();
  v1::GradientSettings settings;
  settings.set_changes(3);
  sync_->HoldForChange();
  ASSERT_TRUE(sync_->AwaitHeld());
  ASSERT_TRUE(sync_->ChangeSettings(changed, settings).ok());
  sync_->ReleaseAfterChange();
  for (const int64_t changes : {2, 3}) {
    FrameWorker worker(1, kGeneration, [&](std::shared_ptr<StepListener> listener) {
      return sync_->Connect(1, "worker-1", ValuePath::kStreamed, std::move(listener), changes);
    });
    ASSERT_TRUE(worker.Ask().ok());
    ASSERT_TRUE(worker.token());
    EXPECT_EQ(worker.settings().has_value(), changes < 3);
  }
}

TEST_F(SyncReplicasTest, AnExpiredLeaseGivesItsSlotsToAnother) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(a->Push().ok());  // In the first step, b would compute a copy sooner.
  a->Drain();
  ASSERT_TRUE(b->Ask().ok());
  const v1::Token late = *a->token();
  clock_.Advance(kLease - absl::Milliseconds(1));
  sync_->Tick();
  b->Drain();
  EXPECT_FALSE(b->token());
  clock_.Advance(absl::Milliseconds(1));
  const int rings = b->rings();
  sync_->Tick();
  EXPECT_GT(b->rings(), rings);
  b->Drain();
  EXPECT_EQ(BlockOf(*b), (SlotBlock{0, 2})) << "a frozen worker takes no part";
  ASSERT_TRUE(b->Push().ok());
  EXPECT_EQ(sync_->step(), 2);
  // The frozen worker wakes up.
  ASSERT_TRUE(a->Push(late).ok());
  EXPECT_EQ(sync_->step(), 2);
  EXPECT_EQ(store_->values()->as<float>()[0], AfterStep0(2) * 3);
  ASSERT_TRUE(b->Push().ok());
  a->Drain();
  EXPECT_THAT(a->results(), ElementsAre(v1::CONTRIBUTION_DUPLICATE)) << "told with what comes next";
  EXPECT_TRUE(a->token());
}

TEST_F(SyncReplicasTest, ALateSoleContributionCounts) {
  Start(2);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  clock_.Advance(kLease * 3);
  sync_->Tick();
  ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(a->results(), ElementsAre(v1::CONTRIBUTION_ACCEPTED));
  EXPECT_EQ(sync_->step(), 1);
}

TEST_F(SyncReplicasTest, HeartbeatsAndFramesRenewTheLease) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  const v1::Token token = *a->token();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kLease * 0.75);
    if (i == 1) {
      StepFrame frame = a->NewFrame(token);
      a->AddReports(&frame);
      ASSERT_TRUE(a->Send(frame).ok());
    } else {
      sync_->Heartbeat(1);
    }
    sync_->Tick();
    v1::RunStatus status;
    sync_->FillStatus(&status);
    ASSERT_EQ(status.worker_size(), 1);
    EXPECT_EQ(status.worker(0).slot_count(), 1);
    EXPECT_EQ(status.worker(0).lease_seconds(), absl::ToDoubleSeconds(kLease));
  }
  clock_.Advance(kLease);
  sync_->Tick();
  v1::RunStatus status;
  sync_->FillStatus(&status);
  EXPECT_EQ(status.worker(0).slot_count(), 0);
}

TEST_F(SyncReplicasTest, ADuplicateIsReportedHoweverLate) {
  Start(2);
  const auto a = Connect(1), b = Connect(2), c = Connect(3), d = Connect(4);
  StartStepOne({a.get(), b.get(), c.get(), d.get()});
  EXPECT_EQ(BlockOf(*c), BlockOf(*a)) << "more workers than slots compute backups";
  ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(a->results(), IsEmpty()) << "there is nothing to send yet";
  ASSERT_TRUE(c->Push().ok());
  ASSERT_TRUE(b->Push().ok());
  a->Drain();
  c->Drain();
  EXPECT_THAT(a->results(), ElementsAre(v1::CONTRIBUTION_ACCEPTED));
  EXPECT_THAT(c->results(), ElementsAre(v1::CONTRIBUTION_DUPLICATE));
  EXPECT_THAT(b->results(), ElementsAre(v1::CONTRIBUTION_ACCEPTED));
  v1::RunStatus status;
  sync_->FillStatus(&status);
  EXPECT_EQ(status.accepted(), 3);
  EXPECT_EQ(status.duplicate(), 1);
  EXPECT_EQ(status.rejected(), 0);
}

TEST_F(SyncReplicasTest, AContributionToAStepThatIsOverIsADuplicate) {
  Start(1);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(b->Ask().ok());
  const v1::Token stale = *b->token();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(b->Push(stale).ok());
  EXPECT_THAT(b->results(), ElementsAre(v1::CONTRIBUTION_DUPLICATE));
  EXPECT_EQ(b->token()->step(), 3);
  EXPECT_EQ(b->values_step(), 3);
}

TEST_F(SyncReplicasTest, ReplacesAWorkerLostMidContribution) {
  Start(2);
  auto a = Connect(1);
  const auto b = Connect(2);
  StartStepOne({a.get(), b.get()});
  // Each worker has one slot of step 1. b completes its contribution. a has sent one of three segments, so "w" already
  // has its new value.
  ASSERT_TRUE(b->Push().ok());
  StepFrame frame = a->NewFrame(*a->token());
  a->AddReports(&frame);
  a->AddPiece(0, 0, 3, &frame);
  ASSERT_TRUE(a->Send(frame).ok());
  b->Drain();
  EXPECT_EQ(b->pieces().at(2), 1) << "values flow as soon as they are final";
  EXPECT_FALSE(b->token());
  a.reset();
  b->Drain();
  ASSERT_TRUE(b->token()) << "the slot of the dead worker";
  EXPECT_EQ(b->token()->step(), 1);
  EXPECT_EQ(b->values_step(), 1);
  ASSERT_TRUE(b->Push().ok());
  EXPECT_EQ(sync_->step(), 2);
  EXPECT_EQ(b->values_step(), 2);
  EXPECT_EQ(b->value(0, 0), AfterStep0(2) * 3);
  EXPECT_EQ(b->value(2, 65539), AfterStep0(2) * 3);
  EXPECT_EQ(b->pieces().at(2), kFrameModelSegments) << "each piece was sent once";
}

TEST_F(SyncReplicasTest, AWorkerThatLeavesFreesItsTokenAtOnce) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(b->Ask().ok());
  EXPECT_FALSE(b->token());
  ASSERT_TRUE(a->Leave().ok());
  b->Drain();
  EXPECT_EQ(BlockOf(*b), (SlotBlock{0, 2}));
  EXPECT_FALSE(sync_->connected(1));
  EXPECT_EQ(idle_calls_, 0);
  ASSERT_TRUE(b->Leave().ok());
  EXPECT_EQ(idle_calls_, 1);
  EXPECT_TRUE(sync_->idle());
}

TEST_F(SyncReplicasTest, ASecondStreamOfASessionReplacesTheFirst) {
  Start(1);
  auto first = Connect(1);
  ASSERT_TRUE(first->Ask().ok());
  const v1::Token token = *first->token();
  const auto second = Connect(1);
  EXPECT_TRUE(absl::IsAborted(first->closed())) << first->closed();
  EXPECT_TRUE(absl::IsAborted(first->Push(token)));
  first.reset();  // closing it again does not affect the second
  EXPECT_TRUE(sync_->connected(1));
  ASSERT_TRUE(second->Ask().ok());
  ASSERT_TRUE(second->Push().ok());
  EXPECT_EQ(sync_->step(), 1);
}

TEST_F(SyncReplicasTest, StartupDelayHoldsAWorkerBack) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(b->Ask(/*startup_delay_steps=*/2).ok());
  for (int step = 0; step < 2; ++step) {
    EXPECT_FALSE(b->token());
    EXPECT_EQ(BlockOf(*a), (SlotBlock{0, 2})) << "who waits takes no share";
    ASSERT_TRUE(a->Push().ok());
    b->Drain();
  }
  ASSERT_TRUE(b->token());
  EXPECT_EQ(b->token()->step(), 2);
}

TEST_F(SyncReplicasTest, AllDelayedWorkersStillStart) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask(2).ok());
  ASSERT_TRUE(b->Ask(2).ok());
  EXPECT_TRUE(a->token());
  EXPECT_FALSE(b->token());
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(a->Push().ok());
  b->Drain();
  EXPECT_TRUE(b->token());
}

TEST_F(SyncReplicasTest, ReplacesAHungWorkerWithHeartbeats) {
  Start(2);
  const auto hung = Connect(1);
  ASSERT_TRUE(hung->Ask().ok());
  clock_.Advance(absl::Milliseconds(200));
  ASSERT_TRUE(hung->Push().ok());
  ASSERT_EQ(BlockOf(*hung), (SlotBlock{0, 2}));
  const auto other = Connect(2);
  ASSERT_TRUE(other->Ask().ok());
  EXPECT_FALSE(other->token());
  for (int i = 0; i < 9; ++i) {
    clock_.Advance(absl::Milliseconds(100));
    sync_->Heartbeat(1);
    sync_->Tick();
  }
  other->Drain();
  ASSERT_TRUE(other->token()) << "four times 0.2 s have passed";
  ASSERT_TRUE(other->Push().ok());
  EXPECT_EQ(sync_->step(), 2);
}

TEST_F(SyncReplicasTest, AnUnresponsiveWorkerDelaysTheRunOnce) {
  Start(1);
  const auto deaf = Connect(1), deaf2 = Connect(2), good = Connect(3);
  for (FrameWorker* worker : {deaf.get(), deaf2.get()}) {
    StepFrame frame = worker->NewFrame(v1::Token());
    frame.end = true;
    ASSERT_TRUE(worker->Send(frame).ok());
  }
  ASSERT_TRUE(good->Ask().ok());
  EXPECT_FALSE(good->token()) << "the slot and its backup are given to those who do not read";
  clock_.Advance(kLease);
  sync_->Tick();
  good->Drain();
  for (int64_t step = 0; step < 10; ++step) {
    ASSERT_TRUE(good->token()) << "step " << step;
    ASSERT_TRUE(good->Push().ok());
  }
  // A worker that finally reads takes part again.
  deaf->Drain();
  sync_->Tick();
  deaf->Drain();
  ASSERT_TRUE(deaf->token());
  EXPECT_EQ(deaf->token()->step(), 10);
}

TEST_F(SyncReplicasTest, AWorkerThatNeverReadsLosesItsStream) {
  Start(1);
  const auto deaf = Connect(1), good = Connect(2);
  StepFrame frame = deaf->NewFrame(v1::Token());
  frame.end = true;
  ASSERT_TRUE(deaf->Send(frame).ok());
  ASSERT_TRUE(good->Ask().ok());
  for (int second = 0; second < 59; ++second) {
    clock_.Advance(absl::Seconds(1));
    sync_->Heartbeat(2);
    sync_->Tick();
  }
  EXPECT_TRUE(deaf->closed().ok());
  clock_.Advance(absl::Seconds(1));
  sync_->Tick();
  EXPECT_TRUE(absl::IsAborted(deaf->closed()));
  EXPECT_THAT(std::string(deaf->closed().message()), HasSubstr("no reply was read for 1m"));
  EXPECT_FALSE(sync_->connected(1));
  EXPECT_TRUE(sync_->connected(2));
  EXPECT_TRUE(absl::IsAborted(deaf->Ask()));
}

TEST_F(SyncReplicasTest, TheStatusHasTheBlockOfEachWorker) {
  Start(4);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  v1::RunStatus status;
  sync_->FillStatus(&status);
  ASSERT_EQ(status.worker_size(), 2);
  for (int i = 0; i < 2; ++i) {
    const SlotBlock block = BlockOf(i == 0 ? *a : *b);
    EXPECT_EQ(status.worker(i).first_slot(), block.first);
    EXPECT_EQ(status.worker(i).slot_count(), block.count);
  }
}

// Most of the next values are available before the step ends.
TEST_F(SyncReplicasTest, ADoneWorkerGetsSegmentsOfOthers) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  ASSERT_TRUE(a->Push().ok());
  const int rings = a->rings();
  StepFrame frame = b->NewFrame(*b->token());
  b->AddReports(&frame);
  b->AddPiece(0, 0, 3, &frame);
  ASSERT_TRUE(b->Send(frame).ok());
  EXPECT_GT(a->rings(), rings);
  a->Drain();
  EXPECT_EQ(a->pieces().at(2), 1);
}

TEST_F(SyncReplicasTest, TokensGoFirstToRecentParticipants) {
  Start(1);
  const auto late = Connect(3), spare = Connect(1), spare2 = Connect(2);
  for (FrameWorker* worker : {late.get(), spare.get(), spare2.get()}) ASSERT_TRUE(worker->Ask().ok());
  ASSERT_TRUE(late->token() && spare->token());
  ASSERT_TRUE(late->Push().ok());
  v1::RunStatus status;
  sync_->FillStatus(&status);
  ASSERT_EQ(status.worker_size(), 3);
  EXPECT_TRUE(status.worker(1).backup());
  EXPECT_EQ(status.worker(2).slot_count(), 1);
  EXPECT_FALSE(status.worker(2).backup()) << "it has the values";
}

TEST_F(SyncReplicasTest, AJumpOfTheClockCostsOnlyTokens) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  clock_.Advance(absl::Hours(1));
  sync_->Tick();
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(a->token()) << "the other slot";
  ASSERT_TRUE(b->Push().ok());
  EXPECT_EQ(sync_->step(), 2);
  ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(a->results(), ElementsAre(v1::CONTRIBUTION_DUPLICATE));
  EXPECT_EQ(a->values_step(), 2);
  EXPECT_EQ(a->value(0, 0), AfterStep0(2) * 3);
}

TEST_F(SyncReplicasTest, ContributionsWaitForRoomAndTheSumsAreTheSame) {
  constexpr int64_t kSlots = 8;
  max_partial_sums_ = LeastPartialSums(kSlots);
  Start(kSlots);
  std::vector<std::unique_ptr<FrameWorker>> owned;
  std::vector<FrameWorker*> workers;
  for (int64_t i = 0; i < kSlots; ++i) {
    owned.push_back(Connect(i + 1));
    workers.push_back(owned.back().get());
  }
  StartStepOne(workers);
  std::sort(workers.begin(), workers.end(),
            [](const auto* a, const auto* b) { return a->token()->first_slot() < b->token()->first_slot(); });
  std::stable_partition(workers.begin(), workers.end(),
                        [](const auto* w) { return w->token()->first_slot() % 2 == 0; });
  int waits = 0;
  for (FrameWorker* worker : workers) {
    ASSERT_TRUE(worker->Push().ok());
    if (worker->waits()) ++waits;
    for (FrameWorker* other : workers) other->Resume();
  }
  EXPECT_EQ(waits, 1);
  v1::WatchRunReply watched;
  sync_->FillTimes(&watched);
  EXPECT_EQ(watched.counters().contribution_waits(), 1);
  EXPECT_EQ(watched.counters().contributions_waiting(), 0);
  EXPECT_EQ(watched.counters().max_partial_sums(), max_partial_sums_);
  EXPECT_EQ(sync_->step(), 2);
  for (FrameWorker* worker : workers) {
    EXPECT_FALSE(worker->waits());
    worker->Drain();
    EXPECT_THAT(worker->results(), ElementsAre(v1::CONTRIBUTION_ACCEPTED));
    EXPECT_EQ(worker->value(0, 0), AfterStep0(kSlots) * 3);
  }
}

TEST_F(SyncReplicasTest, StoppingTheRunLetsContributionsGoThatWait) {
  max_partial_sums_ = 1;
  Start(3);
  const auto a = Connect(1), b = Connect(2), c = Connect(3);
  StartStepOne({a.get(), b.get(), c.get()});
  for (FrameWorker* worker : {a.get(), b.get(), c.get()}) {
    if (worker->token()->first_slot() != 2) continue;
    ASSERT_TRUE(worker->Push().ok());
    ASSERT_TRUE(worker->waits());
    EXPECT_FALSE(worker->Resume());
    sync_->Stop();
    EXPECT_TRUE(worker->Resume());
    EXPECT_FALSE(worker->waits());
  }
}

// A listener that counts how often it is notified that there may be a reply.
class CountingListener : public StepListener {
 public:
  void OnReplyReady() override { ++calls; }
  void OnResume() override {}
  void OnClosed(const absl::Status&, bool) override {}
  int calls = 0;
};

TEST_F(SyncReplicasTest, ACommitIsToldWhenItsCallHasReturned) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  EXPECT_TRUE(sync_->AwaitCommitsTold(clock_.Now())) << "there is none";
  bool told = true;
  on_commit_ = [&] { told = sync_->AwaitCommitsTold(clock_.Now()); };
  ASSERT_TRUE(a->Push().ok());
  EXPECT_FALSE(told) << "while it is called";
  EXPECT_TRUE(sync_->AwaitCommitsTold(clock_.Now()));
}

TEST_F(SyncReplicasTest, AWorkerThatHasNothingToHearIsNotWoken) {
  Start(1);
  for (const ValuePath path : {ValuePath::kStreamed, ValuePath::kInProcess}) {
    auto busy = Connect(1), backup = Connect(2);
    ASSERT_TRUE(busy->Ask().ok());
    ASSERT_TRUE(backup->Ask().ok());
    const auto listener = std::make_shared<CountingListener>();
    const auto idle = sync_->Connect(3, "idle", path, listener);
    StepFrame ask;
    ask.session_id = 3;
    ask.generation = kGeneration;
    ask.end = true;
    bool waits = false;
    ASSERT_TRUE(idle->OnFrame(ask, &waits).ok());
    listener->calls = 0;
    StepFrame reports = busy->NewFrame(*busy->token());
    busy->AddReports(&reports);
    ASSERT_TRUE(busy->Send(reports).ok());
    StepFrame piece = busy->NewFrame(*busy->token());
    busy->AddPiece(0, 0, 3, &piece);
    ASSERT_TRUE(busy->Send(piece).ok());
    sync_->Tick();
    EXPECT_EQ(listener->calls, 0) << "nothing of this is its business";
    backup.reset();
    EXPECT_GT(listener->calls, 0) << "it has a token now";
    StepReplyFrame reply;
    EXPECT_TRUE(idle->NextReply(&reply));
    idle->Close();
  }
}

// Tests under a policy that stages contributions: each one counts only as a whole, because copies may differ.
class StagedContributionsTest : public SyncReplicasFixture {
 protected:
  void StartArrivals(int64_t slots, int64_t newest) {
    policy_ = std::make_unique<ArrivalsPolicy>(slots, newest, /*step=*/0);
    Start(slots);
  }
  // Connects a worker, which gets a token for step 0.
  std::unique_ptr<FrameWorker> ConnectWithToken(uint64_t session) {
    auto worker = Connect(session);
    EXPECT_TRUE(worker->Ask().ok());
    EXPECT_TRUE(worker->token() && worker->token()->step() == 0);
    return worker;
  }
  // Sends the reports of the worker's contribution and a gradient of 100 for "w", its first variable.
  absl::Status SendHalf(FrameWorker* worker) {
    StepFrame frame = worker->NewFrame(*worker->token());
    worker->AddReports(&frame);
    StepPiece piece;
    piece.content = FloatChunks(hundred_.data(), 3);
    frame.gradients.push_back(piece);
    return worker->Send(frame);
  }
  absl::Status SendRest(FrameWorker* worker) {
    StepFrame frame = worker->NewFrame(*worker->token());
    worker->AddPiece(2, 0, 65540, &frame);
    frame.end = true;
    const absl::Status status = worker->Send(frame);
    worker->ForgetToken();
    worker->Drain();
    return status;
  }
  // Returns the first and the last trained element.
  std::vector<float> Values() const {
    const float* const values = store_->values()->as<float>();
    const auto& variables = store_->layout().variables();
    return {values[variables[0].flat_offset], values[variables[2].flat_offset + 65539]};
  }

  const std::vector<float> hundred_ = {100, 100, 100};
};

TEST_F(StagedContributionsTest, EveryPushIsAnUpdateIfThePolicySaysSo) {
  StartArrivals(/*slots=*/1, /*newest=*/10);
  const auto a = ConnectWithToken(1), b = ConnectWithToken(2);
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(b->Push().ok());
  EXPECT_THAT(b->results(), ElementsAre(v1::CONTRIBUTION_ACCEPTED)) << "its token is of step 0";
  EXPECT_EQ(commits_.size(), 2u);
  EXPECT_THAT(Values(), ElementsAre(-2, -2));
}

TEST_F(StagedContributionsTest, AWorkerThatDiesMidwayLeavesNoTrace) {
  StartArrivals(/*slots=*/2, /*newest=*/1);
  auto dies = ConnectWithToken(1);
  const auto a = ConnectWithToken(2), b = ConnectWithToken(3);
  ASSERT_TRUE(SendHalf(dies.get()).ok());
  dies.reset();
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(b->Push().ok());
  ASSERT_EQ(commits_.size(), 1u);
  EXPECT_EQ(commits_[0].commit.mean_loss(), 1) << "of both";
  EXPECT_THAT(Values(), ElementsAre(-1, -1)) << "no update has variables of two contributions";
}

TEST_F(StagedContributionsTest, AStaleContributionIsDroppedWhole) {
  StartArrivals(/*slots=*/1, /*newest=*/1);
  const auto a = ConnectWithToken(1), late = ConnectWithToken(2);
  ASSERT_TRUE(SendHalf(late.get()).ok());
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(SendRest(late.get()).ok());
  EXPECT_THAT(late->results(), ElementsAre(v1::CONTRIBUTION_DUPLICATE));
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_THAT(Values(), ElementsAre(-1, -1));
}

TEST_F(StagedContributionsTest, AContributionMayOutlastACommit) {
  StartArrivals(/*slots=*/1, /*newest=*/2);
  const auto a = ConnectWithToken(1), late = ConnectWithToken(2);
  ASSERT_TRUE(SendHalf(late.get()).ok());
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(SendRest(late.get()).ok());
  EXPECT_THAT(late->results(), ElementsAre(v1::CONTRIBUTION_ACCEPTED));
  EXPECT_EQ(commits_.size(), 2u);
  EXPECT_THAT(Values(), ElementsAre(-101, -2));
}

TEST_F(StagedContributionsTest, OneThatIsNotFiniteFailsTheRun) {
  StartArrivals(/*slots=*/1, /*newest=*/1);
  const auto a = ConnectWithToken(1);
  StepFrame frame = a->NewFrame(*a->token());
  a->AddReports(&frame);
  frame.reports[0].set_loss(std::numeric_limits<float>::infinity());
  a->AddAllPieces(&frame);
  frame.end = true;
  ASSERT_TRUE(a->Send(frame).ok());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_THAT(failures_[0].message(), HasSubstr("the loss of step 1 is not finite"));
  EXPECT_THAT(commits_, IsEmpty());
}

}  // namespace
}  // namespace lockstep
