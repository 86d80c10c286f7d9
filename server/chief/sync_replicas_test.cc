#include "server/chief/sync_replicas.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/simulated_clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/chief/testing/frame_worker.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kEpoch = 5;
constexpr absl::Duration kLease = absl::Seconds(2);

class SyncReplicasTest : public ::testing::Test {
 protected:
  // SGD with rate 1 from zeros.
  void Start(int64_t slots, int64_t total_steps = 100, int64_t snapshot_every_steps = 0,
             const Compression& compression = {}) {
    OptimizerConfig optimizer;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {}", &optimizer));
    store_ = VariableStore::Create(FrameModel(), optimizer, compression, slots).value();
    store_->Initialize(1);
    SyncReplicas::Options options;
    options.clock = &clock_;
    options.epoch = kEpoch;
    options.slots = slots;
    options.total_steps = total_steps;
    options.lease = kLease;
    options.learning_rate.set_initial(1);
    options.snapshot_every_steps = snapshot_every_steps;
    options.on_commit = [this](const SyncReplicas::Committed& committed) { commits_.push_back(committed); };
    options.on_snapshot = [this](VariableStore::Snapshot snapshot) { snapshots_.push_back(snapshot.step); };
    options.on_failure = [this](absl::Status status) { failures_.push_back(status); };
    options.on_idle = [this] { ++idle_calls_; };
    sync_ = std::make_unique<SyncReplicas>(std::move(options), store_.get());
  }

  std::unique_ptr<FrameWorker> Connect(uint64_t session) {
    return std::make_unique<FrameWorker>(session, kEpoch, [this, session](std::shared_ptr<StepListener> listener) {
      return sync_->Connect(session, absl::StrCat("worker-", session), ValuePath::kStreamed, std::move(listener));
    });
  }
  // Step 0 is over and all of them have their tokens for step 1.
  static void StartStepOne(const std::vector<FrameWorker*>& workers) {
    for (FrameWorker* worker : workers) ASSERT_TRUE(worker->Ask().ok());
    ASSERT_TRUE(workers[0]->Push().ok());
    for (FrameWorker* worker : workers) {
      worker->Drain();
      ASSERT_TRUE(worker->token() && worker->token()->step() == 1);
    }
  }
  static SlotBlock BlockOf(const FrameWorker& worker) {
    EXPECT_TRUE(worker.token().has_value());
    return worker.token() ? SlotBlock{worker.token()->first_slot(), worker.token()->slot_count()} : SlotBlock{-1, -1};
  }
  // w after one step of gradients (slot + 1), R = slots.
  static float AfterStep0(int64_t slots) { return -static_cast<float>(slots + 1) / 2; }

  // Values and optimizer state.
  std::string Bytes(const VariableStore::Snapshot& snapshot) const {
    std::string bytes(snapshot.values->data(), snapshot.values->size());
    for (const auto& slot : snapshot.slots) bytes.append(slot->data(), slot->size());
    return bytes;
  }

  SimulatedClock clock_;
  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<SyncReplicas> sync_;
  std::vector<SyncReplicas::Committed> commits_;
  std::vector<int64_t> snapshots_;
  std::vector<absl::Status> failures_;
  int idle_calls_ = 0;
};

TEST_F(SyncReplicasTest, AStepIsAppliedWhenAllSlotsAreIn) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  EXPECT_EQ(a->values_step(), 0);
  EXPECT_EQ(BlockOf(*a), (SlotBlock{0, 2})) << "the only one";
  ASSERT_TRUE(b->Ask().ok());
  EXPECT_FALSE(b->token()) << "all slots are given";
  ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(a->fates(), ElementsAre(ACCEPTED));
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
  EXPECT_EQ(commits_[0].step, 1);
  EXPECT_EQ(commits_[0].mean_loss, 1.5);
}

TEST_F(SyncReplicasTest, AnExpiredLeaseGivesItsSlotsToAnother) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(b->Ask().ok());
  const Token late = *a->token();
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
  EXPECT_EQ(sync_->step(), 1);
  // The frozen worker wakes up.
  ASSERT_TRUE(a->Push(late).ok());
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(store_->values()->as<float>()[0], AfterStep0(2));
  ASSERT_TRUE(b->Push().ok());
  a->Drain();
  EXPECT_THAT(a->fates(), ElementsAre(DUPLICATE)) << "told with what comes next";
  EXPECT_TRUE(a->token());
}

TEST_F(SyncReplicasTest, ALateContributionCountsWhenNobodyElseHasMadeIt) {
  Start(2);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  clock_.Advance(kLease * 3);
  sync_->Tick();
  ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(a->fates(), ElementsAre(ACCEPTED));
  EXPECT_EQ(sync_->step(), 1);
}

TEST_F(SyncReplicasTest, HeartbeatsAndFramesRenewTheLease) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  const Token token = *a->token();
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
    RunStatus status;
    sync_->FillStatus(&status);
    ASSERT_EQ(status.worker_size(), 1);
    EXPECT_EQ(status.worker(0).slot_count(), 1);
    EXPECT_EQ(status.worker(0).lease_seconds(), absl::ToDoubleSeconds(kLease));
  }
  clock_.Advance(kLease);
  sync_->Tick();
  RunStatus status;
  sync_->FillStatus(&status);
  EXPECT_EQ(status.worker(0).slot_count(), 0);
}

TEST_F(SyncReplicasTest, ADuplicateIsToldToTheWorkerHoweverLateItsReplyComes) {
  Start(2);
  const auto a = Connect(1), b = Connect(2), c = Connect(3), d = Connect(4);
  StartStepOne({a.get(), b.get(), c.get(), d.get()});
  EXPECT_EQ(BlockOf(*c), BlockOf(*a)) << "more workers than slots compute backups";
  ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(a->fates(), IsEmpty()) << "there is nothing to send yet";
  ASSERT_TRUE(c->Push().ok());
  ASSERT_TRUE(b->Push().ok());
  a->Drain();
  c->Drain();
  EXPECT_THAT(a->fates(), ElementsAre(ACCEPTED));
  EXPECT_THAT(c->fates(), ElementsAre(DUPLICATE));
  EXPECT_THAT(b->fates(), ElementsAre(ACCEPTED));
  RunStatus status;
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
  const Token stale = *b->token();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(b->Push(stale).ok());
  EXPECT_THAT(b->fates(), ElementsAre(DUPLICATE));
  EXPECT_EQ(b->token()->step(), 3);
  EXPECT_EQ(b->values_step(), 3);
}

TEST_F(SyncReplicasTest, AWorkerThatDiesInTheMiddleOfItsContributionIsReplaced) {
  Start(2);
  auto a = Connect(1);
  const auto b = Connect(2);
  StartStepOne({a.get(), b.get()});
  // Both have one slot of step 1. b ends its own; a has sent one of three segments, so "w" has its new value already.
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
  const Token token = *first->token();
  const auto second = Connect(1);
  EXPECT_TRUE(absl::IsAborted(first->closed())) << first->closed();
  EXPECT_TRUE(absl::IsAborted(first->Push(token)));
  first.reset();  // closing it once more does not touch the second
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

TEST_F(SyncReplicasTest, ARunWhoseWorkersAreAllDelayedDoesNotWaitForItself) {
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

TEST_F(SyncReplicasTest, SnapshotsComeAtMultiplesOfSteps) {
  Start(1, 5, /*snapshot_every_steps=*/2);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(snapshots_, ElementsAre(2, 4));
}

TEST_F(SyncReplicasTest, ASnapshotIsOfTheLastCommittedStepAlsoWhenTheNextIsHalfApplied) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(a->Push().ok());
  const std::string committed = Bytes(sync_->TakeSnapshot());
  StepFrame frame = a->NewFrame(*a->token());
  a->AddReports(&frame);
  a->AddPiece(0, 0, 3, &frame);
  ASSERT_TRUE(a->Send(frame).ok());
  const VariableStore::Snapshot snapshot = sync_->TakeSnapshot();
  EXPECT_EQ(snapshot.step, 1);
  EXPECT_EQ(Bytes(snapshot), committed);
  StepFrame rest = a->NewFrame(*a->token());
  a->AddPiece(2, 0, 65540, &rest);
  rest.end = true;
  ASSERT_TRUE(a->Send(rest).ok());
  EXPECT_EQ(sync_->step(), 2);
  EXPECT_EQ(Bytes(snapshot), committed);
  EXPECT_NE(Bytes(sync_->TakeSnapshot()), committed);
}

TEST_F(SyncReplicasTest, AfterAStopNothingIsCommittedAndNoTokenGiven) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(a->Push().ok());
  StepFrame frame = a->NewFrame(*a->token());
  a->AddReports(&frame);
  a->AddPiece(0, 0, 3, &frame);
  ASSERT_TRUE(a->Send(frame).ok());
  sync_->Stop();
  StepFrame rest = a->NewFrame(*a->token());
  a->AddPiece(2, 0, 65540, &rest);
  rest.end = true;
  EXPECT_TRUE(a->Send(rest).ok()) << "the worker did nothing wrong";
  const auto b = Connect(2);
  ASSERT_TRUE(b->Ask().ok());
  EXPECT_FALSE(b->token());
  clock_.Advance(absl::Hours(1));
  sync_->Tick();
  EXPECT_FALSE(b->token());
  RunStatus status;
  sync_->FillStatus(&status);
  for (const WorkerStatus& worker : status.worker()) EXPECT_EQ(worker.slot_count(), 0);
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(sync_->TakeSnapshot().step, 1);
}

TEST_F(SyncReplicasTest, FinishIsToldToEveryWorkerThatWaitsOrComes) {
  Start(1, 1);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(b->Ask().ok());  // a backup, still computing
  const Token backup = *b->token();
  ASSERT_TRUE(a->Push().ok());
  EXPECT_FALSE(a->token());
  EXPECT_FALSE(a->finished());
  sync_->Finish("");
  a->Drain();
  EXPECT_TRUE(a->finished());
  ASSERT_TRUE(b->Push(backup).ok());
  EXPECT_TRUE(b->finished());
  EXPECT_EQ(b->finish_message(), "");
  const auto c = Connect(3);
  ASSERT_TRUE(c->Ask().ok());
  EXPECT_TRUE(c->finished());
}

TEST_F(SyncReplicasTest, AnAbandonedBlockOfAFinishedRunIsNoError) {
  Start(1, 1);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(b->Ask().ok());
  const Token backup = *b->token();
  ASSERT_TRUE(a->Push().ok());
  sync_->Finish("");
  StepFrame frame = b->NewFrame(backup);
  frame.end = true;
  EXPECT_TRUE(b->Send(frame).ok());
  b->Drain();
  EXPECT_TRUE(b->finished());
}

TEST_F(SyncReplicasTest, ALossThatIsNotFiniteStopsTheRunBeforeAnythingChanges) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  const auto values = store_->values();
  ASSERT_TRUE(a->Push().ok());
  StepFrame frame = b->NewFrame(*b->token());
  b->AddReports(&frame);
  frame.reports[0].set_loss(std::numeric_limits<float>::quiet_NaN());
  b->AddAllPieces(&frame);
  frame.end = true;
  EXPECT_TRUE(b->Send(frame).ok()) << "the stream goes on, to tell the worker";
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(failures_[0]));
  EXPECT_EQ(failures_[0].message(), "the loss of step 1 is not finite (slot 1, computed by worker-2)");
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(store_->values(), values);
  sync_->Finish(std::string(failures_[0].message()));
  for (FrameWorker* worker : {a.get(), b.get()}) {
    worker->Drain();
    EXPECT_TRUE(worker->finished());
    EXPECT_THAT(worker->finish_message(), HasSubstr("not finite"));
  }
  EXPECT_EQ(failures_.size(), 1u);
}

TEST_F(SyncReplicasTest, GradientsOfAnotherTypeThanTheRunsAreRefused) {
  Start(1);
  const auto plain = Connect(1);
  ASSERT_TRUE(plain->Ask().ok());
  StepFrame frame = plain->NewFrame(*plain->token());
  plain->AddReports(&frame);
  const uint16_t numbers[3] = {};
  frame.gradients.resize(1);
  frame.gradients[0].content = FloatChunks(DT_HALF, numbers, 3);
  absl::Status status = plain->Send(frame);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "the gradient of w is sent as float16; the run's gradients travel as float32");
  plain->connection()->Close();
  sync_.reset();

  Compression compression;
  compression.gradients = compression.values = DT_BFLOAT16;
  Start(1, 100, 0, compression);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  status = a->Push();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "the gradient of big is sent as float32; the run's gradients travel as bfloat16");
  EXPECT_EQ(sync_->step(), 0);
}

TEST_F(SyncReplicasTest, TopKTakesEachSlotsPiecesOnceAndRefusesOthers) {
  Compression compression;
  compression.top_k = 0.5;
  Start(2, 100, 0, compression);
  const std::string differences("\0\0\0\0\0\x40", 6);  // element 0 by 2
  const auto add = [&differences](int64_t variable, int64_t offset, int64_t slot, StepFrame* frame) {
    StepPiece piece;
    piece.variable = variable;
    piece.offset = offset;
    piece.slot = slot;
    piece.sparse = true;
    piece.content.Append(differences);
    frame->gradients.push_back(piece);
  };
  {
    const auto whole = Connect(1);
    ASSERT_TRUE(whole->Ask().ok());
    const absl::Status status = whole->Push();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(), "a gradient is sent whole; the run's travel sparse");
  }
  {
    const auto twice = Connect(2);
    ASSERT_TRUE(twice->Ask().ok());
    StepFrame frame = twice->NewFrame(*twice->token());
    twice->AddReports(&frame);
    add(0, 0, 1, &frame);
    add(0, 0, 1, &frame);
    const absl::Status status = twice->Send(frame);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(), "the gradient of w from element 0 was sent twice");
  }
  {
    const auto incomplete = Connect(3);
    ASSERT_TRUE(incomplete->Ask().ok());
    StepFrame frame = incomplete->NewFrame(*incomplete->token());
    incomplete->AddReports(&frame);
    add(0, 0, 0, &frame);
    frame.end = true;
    const absl::Status status = incomplete->Send(frame);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("has 1 of 6 pieces"));
  }
  const auto a = Connect(4);
  ASSERT_TRUE(a->Ask().ok());
  StepFrame frame = a->NewFrame(*a->token());
  a->AddReports(&frame);
  for (const int64_t slot : {0, 1}) {
    add(2, 65536, slot, &frame);
    add(2, 0, slot, &frame);
    add(0, 0, slot, &frame);
  }
  frame.end = true;
  ASSERT_TRUE(a->Send(frame).ok());
  a->Drain();
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(a->value(0, 0), -2) << "the mean of two slots' first estimates";
  EXPECT_EQ(a->value(0, 1), 0);
  // A worker that comes now lacks the estimates: two slots of three segments, sent before its token.
  a->connection()->Close();
  const auto b = Connect(5);
  StepFrame ask = b->NewFrame(Token());
  ask.end = true;
  ASSERT_TRUE(b->Send(ask).ok());
  size_t estimates = 0;
  StepReplyFrame reply;
  while (!reply.token && b->connection()->NextReply(&reply)) {
    for (const StepPiece& piece : reply.estimates) {
      EXPECT_EQ(reply.estimates_step, 1);
      float first = 0;
      piece.content.CopyTo(0, 1, &first);
      EXPECT_EQ(first, 2);
      ++estimates;
    }
  }
  ASSERT_TRUE(reply.token);
  EXPECT_EQ(estimates, 6u);
}

TEST_F(SyncReplicasTest, BytesAreCountedOfTheMessagesAndForEachStep) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  RunStatus status;
  sync_->FillStatus(&status);
  EXPECT_EQ(status.bytes_received_per_step(), 0) << "no step yet";
  for (int step = 0; step < 4; ++step) {
    StepFrame frame = a->NewFrame(*a->token());
    a->AddReports(&frame);
    a->AddAllPieces(&frame);
    frame.end = true;
    frame.encoded_bytes = 1000;
    ASSERT_TRUE(a->Send(frame).ok());
    a->Drain();
    a->connection()->CountSent(300);
  }
  status.Clear();
  sync_->FillStatus(&status);
  ASSERT_EQ(status.worker_size(), 1);
  EXPECT_EQ(status.worker(0).bytes_received(), 4000);
  EXPECT_EQ(status.worker(0).bytes_sent(), 1200);
  EXPECT_EQ(status.bytes_received_per_step(), 1000);
  EXPECT_EQ(status.bytes_sent_per_step(), 300);
  // They are recent figures: two marks later the old bytes are gone.
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(absl::Seconds(4));
    sync_->Tick();
  }
  StepFrame frame = a->NewFrame(*a->token());
  a->AddReports(&frame);
  a->AddAllPieces(&frame);
  frame.end = true;
  frame.encoded_bytes = 500;
  const absl::Status sent = a->Send(frame);
  ASSERT_TRUE(sent.ok()) << sent;
  RunStatus later;
  sync_->FillStatus(&later);
  EXPECT_EQ(later.bytes_received_per_step(), 500);
  EXPECT_EQ(later.bytes_sent_per_step(), 0);
}

TEST_F(SyncReplicasTest, AGradientThatIsNotFiniteStopsTheRunBeforeItsStepIsOver) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  const auto values = store_->values();
  ASSERT_TRUE(a->Push().ok());
  StepFrame frame = b->NewFrame(*b->token());
  b->AddReports(&frame);
  const std::vector<float> wrong(3, std::numeric_limits<float>::quiet_NaN());
  b->AddPiece(2, 0, 65540, &frame);
  StepPiece piece;
  piece.content = FloatChunks(wrong.data(), 3);
  frame.gradients.push_back(std::move(piece));
  frame.end = true;
  EXPECT_TRUE(b->Send(frame).ok()) << "the stream goes on, to tell the worker";
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(failures_[0]));
  EXPECT_EQ(failures_[0].message(), "the gradient of w of step 1 is not finite (sent by worker-2)");
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(store_->values(), values);
  EXPECT_EQ(sync_->TakeSnapshot().values, values) << "the step is half applied";
}

TEST_F(SyncReplicasTest, AWorkerThatHangsWithItsHeartbeatsGoingOnIsReplaced) {
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

TEST_F(SyncReplicasTest, AWorkerThatDoesNotTakeItsTokensHoldsUpTheRunOnce) {
  Start(1);
  const auto deaf = Connect(1), deaf2 = Connect(2), good = Connect(3);
  for (FrameWorker* worker : {deaf.get(), deaf2.get()}) {
    StepFrame frame = worker->NewFrame(Token());
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
  // One that reads at last takes part again.
  deaf->Drain();
  sync_->Tick();
  deaf->Drain();
  ASSERT_TRUE(deaf->token());
  EXPECT_EQ(deaf->token()->step(), 10);
}

TEST_F(SyncReplicasTest, AWorkerThatNeverReadsLosesItsStream) {
  Start(1);
  const auto deaf = Connect(1), good = Connect(2);
  StepFrame frame = deaf->NewFrame(Token());
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

TEST_F(SyncReplicasTest, ASecondTokenOfAStepFindsTheStepsValuesThoughNewerOnesCame) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  StepFrame frame = b->NewFrame(*b->token());
  b->AddReports(&frame);
  b->AddPiece(2, 0, 65540, &frame);
  ASSERT_TRUE(b->Send(frame).ok());
  ASSERT_TRUE(a->Push().ok());
  EXPECT_EQ(a->pieces().at(2), 2) << "the two segments of big are final and were sent";
  EXPECT_FALSE(a->token());
  b->connection()->Close();
  a->Drain();
  ASSERT_TRUE(a->token());
  EXPECT_EQ(a->token()->step(), 1);
  EXPECT_EQ(a->values_step(), 1) << "the values to compute with are those that it had";
  EXPECT_EQ(a->pieces().at(1), kFrameModelSegments) << "and they are not sent again";
  ASSERT_TRUE(a->Push().ok());
  EXPECT_EQ(a->values_step(), 2);
  EXPECT_EQ(a->pieces().at(2), kFrameModelSegments);
  EXPECT_EQ(a->value(2, 0), AfterStep0(2) * 3);
}

TEST_F(SyncReplicasTest, AWorkerThatOnlyWaitsIsSentValuesWithItsTokenAlone) {
  Start(1);
  const auto a = Connect(1), b = Connect(2), spare = Connect(3), delayed = Connect(4);
  for (FrameWorker* worker : {a.get(), b.get(), spare.get()}) ASSERT_TRUE(worker->Ask().ok());
  ASSERT_TRUE(delayed->Ask(/*startup_delay_steps=*/50).ok());
  ASSERT_TRUE(a->token() && b->token());
  // Half of the next values are final when those that compute them die.
  StepFrame frame = a->NewFrame(*a->token());
  a->AddReports(&frame);
  a->AddPiece(2, 0, 65540, &frame);
  ASSERT_TRUE(a->Send(frame).ok());
  a->Drain();
  EXPECT_EQ(a->pieces().at(1), 2);
  for (FrameWorker* waiting : {spare.get(), delayed.get()}) {
    waiting->Drain();
    EXPECT_THAT(waiting->pieces(), IsEmpty());
  }
  a->connection()->Close();
  b->connection()->Close();
  spare->Drain();
  ASSERT_TRUE(spare->token());
  EXPECT_EQ(spare->token()->step(), 0);
  EXPECT_EQ(spare->values_step(), 0);
  ASSERT_TRUE(spare->Push().ok());
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(spare->value(2, 65539), -1);
  delayed->Drain();
  EXPECT_THAT(delayed->pieces(), IsEmpty());
}

TEST_F(SyncReplicasTest, TokensGoFirstToThoseThatTookPartInTheStepBefore) {
  Start(1);
  const auto late = Connect(3), spare = Connect(1), spare2 = Connect(2);
  for (FrameWorker* worker : {late.get(), spare.get(), spare2.get()}) ASSERT_TRUE(worker->Ask().ok());
  ASSERT_TRUE(late->token() && spare->token());
  ASSERT_TRUE(late->Push().ok());
  RunStatus status;
  sync_->FillStatus(&status);
  ASSERT_EQ(status.worker_size(), 3);
  EXPECT_TRUE(status.worker(1).backup());
  EXPECT_EQ(status.worker(2).slot_count(), 1);
  EXPECT_FALSE(status.worker(2).backup()) << "it has the values";
}

// Counts how often a connection is told that it may have a reply.
class CountingListener : public StepListener {
 public:
  void OnReplyReady() override { ++calls; }
  void OnClosed(const absl::Status&, bool) override {}
  int calls = 0;
};

TEST_F(SyncReplicasTest, AWorkerThatHasNothingToHearIsNotWoken) {
  Start(1);
  for (const ValuePath path : {ValuePath::kStreamed, ValuePath::kHandedOver}) {
    auto busy = Connect(1), backup = Connect(2);
    ASSERT_TRUE(busy->Ask().ok());
    ASSERT_TRUE(backup->Ask().ok());
    const auto listener = std::make_shared<CountingListener>();
    const auto idle = sync_->Connect(3, "idle", path, listener);
    StepFrame ask;
    ask.session_id = 3;
    ask.epoch = kEpoch;
    ask.end = true;
    ASSERT_TRUE(idle->OnFrame(ask).ok());
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
  EXPECT_THAT(a->fates(), ElementsAre(DUPLICATE));
  EXPECT_EQ(a->values_step(), 2);
  EXPECT_EQ(a->value(0, 0), AfterStep0(2) * 3);
}

}  // namespace
}  // namespace lockstep
