// Tests how a run ends, what a snapshot holds, and how values, gradients and bytes are passed.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/server/sync/testing/sync_replicas_fixture.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using SyncReplicasValuesTest = SyncReplicasFixture;

TEST_F(SyncReplicasValuesTest, SnapshotsComeAtMultiplesOfSteps) {
  Start(1, 5, /*snapshot_every_steps=*/2);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a->Push().ok());
  EXPECT_THAT(snapshots_, ElementsAre(2, 4));
}

TEST_F(SyncReplicasValuesTest, SnapshotsAreOfTheLastCommittedStep) {
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

TEST_F(SyncReplicasValuesTest, AfterAStopNothingIsCommittedAndNoTokenGiven) {
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
  v1::RunStatus status;
  sync_->FillStatus(&status);
  for (const v1::WorkerStatus& worker : status.worker()) EXPECT_EQ(worker.slot_count(), 0);
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(sync_->TakeSnapshot().step, 1);
}

TEST_F(SyncReplicasValuesTest, FinishIsToldToEveryWorkerThatWaitsOrComes) {
  Start(1, 1);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(b->Ask().ok());  // a backup, still computing
  const v1::Token backup = *b->token();
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

TEST_F(SyncReplicasValuesTest, AnAbandonedBlockOfAFinishedRunIsNoError) {
  Start(1, 1);
  const auto a = Connect(1), b = Connect(2);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(b->Ask().ok());
  const v1::Token backup = *b->token();
  ASSERT_TRUE(a->Push().ok());
  sync_->Finish("");
  StepFrame frame = b->NewFrame(backup);
  frame.end = true;
  EXPECT_TRUE(b->Send(frame).ok());
  b->Drain();
  EXPECT_TRUE(b->finished());
}

TEST_F(SyncReplicasValuesTest, ANonFiniteLossStopsTheRunUnchanged) {
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
  EXPECT_EQ(failures_[0].message(), "the loss of step 2 is not finite (slot 1, computed by worker-2)");
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

TEST_F(SyncReplicasValuesTest, WhatIsNotFiniteMayEndTheRunBeforeItsStep) {
  non_finite_ = NonFinite::kEnds;
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
  EXPECT_TRUE(b->Send(frame).ok());
  EXPECT_TRUE(failures_.empty());
  EXPECT_EQ(completions_, 1);
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(sync_->total_steps(), 1);
  EXPECT_EQ(sync_->end_reason(), "the loss of step 2 is not finite (slot 1, computed by worker-2)");
  EXPECT_EQ(store_->values(), values);
  sync_->Finish("");
  for (FrameWorker* worker : {a.get(), b.get()}) {
    worker->Drain();
    EXPECT_TRUE(worker->finished());
  }
}

TEST_F(SyncReplicasValuesTest, ASkippedNonFiniteStepOnlyCounts) {
  non_finite_ = NonFinite::kSkipsStep;
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  const std::string before = Bytes(sync_->TakeSnapshot());
  StepFrame frame = b->NewFrame(*b->token());
  b->AddReports(&frame);
  frame.reports[0].set_loss(std::numeric_limits<float>::quiet_NaN());
  b->AddAllPieces(&frame);
  frame.end = true;
  ASSERT_TRUE(b->Send(frame).ok());
  b->ForgetToken();
  EXPECT_EQ(sync_->step(), 1) << "the other slot is still to come, for its report counts";
  ASSERT_TRUE(a->Push().ok());
  EXPECT_EQ(sync_->step(), 2);
  EXPECT_TRUE(failures_.empty());
  EXPECT_EQ(completions_, 0);
  EXPECT_EQ(Bytes(sync_->TakeSnapshot()), before);
  ASSERT_EQ(commits_.size(), 2u);
  EXPECT_FALSE(commits_[0].commit.skipped());
  EXPECT_TRUE(commits_[1].commit.skipped());
  EXPECT_TRUE(std::isnan(commits_[1].commit.mean_loss()));
  v1::RunStatus status;
  sync_->FillStatus(&status);
  EXPECT_EQ(status.skipped_steps(), 1);
  // The workers get the old values as the values of the new step.
  for (FrameWorker* worker : {a.get(), b.get()}) worker->Drain();
  ASSERT_TRUE(a->token() && a->token()->step() == 2);
  EXPECT_EQ(a->values_step(), 2);
  EXPECT_EQ(a->value(0, 0), AfterStep0(2));
  ASSERT_TRUE(a->Push().ok());
  ASSERT_TRUE(b->Push().ok());
  EXPECT_EQ(sync_->step(), 3);
  EXPECT_NE(Bytes(sync_->TakeSnapshot()), before);
}

TEST_F(SyncReplicasValuesTest, GradientsOfAnotherTypeThanTheRunsAreRefused) {
  Start(1);
  auto plain = Connect(1);
  ASSERT_TRUE(plain->Ask().ok());
  StepFrame frame = plain->NewFrame(*plain->token());
  plain->AddReports(&frame);
  const uint16_t numbers[3] = {};
  frame.gradients.resize(1);
  frame.gradients[0].content = FloatChunks(v1::DT_HALF, numbers, 3);
  absl::Status status = plain->Send(frame);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "the gradient of w is sent as float16; the run's gradients travel as float32");
  plain.reset();
  sync_.reset();

  Compression compression;
  compression.gradients = compression.values = v1::DT_BFLOAT16;
  Start(1, 100, 0, compression);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  status = a->Push();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "the gradient of big is sent as float32; the run's gradients travel as bfloat16");
  EXPECT_EQ(sync_->step(), 0);
}

TEST_F(SyncReplicasValuesTest, TopKTakesEachSlotsPiecesOnceAndRefusesOthers) {
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
  // A worker that connects now lacks the estimates of two slots with three segments each, which are sent before its
  // token.
  a->connection()->Close();
  const auto b = Connect(5);
  StepFrame ask = b->NewFrame(v1::Token());
  ask.end = true;
  ASSERT_TRUE(b->Send(ask).ok());
  size_t estimates = 0;
  bool has_token = false;
  for (StepReplyFrame reply; !has_token && b->connection()->NextReply(&reply); Clear(&reply)) {
    for (const StepPiece& piece : reply.estimates) {
      EXPECT_EQ(reply.estimates_step, 1);
      float first = 0;
      piece.content.CopyTo(0, 1, &first);
      EXPECT_EQ(first, 2);
      ++estimates;
    }
    has_token = reply.token.has_value();
  }
  ASSERT_TRUE(has_token);
  EXPECT_EQ(estimates, 6u);
}

TEST_F(SyncReplicasValuesTest, BytesAreCountedOfTheMessagesAndForEachStep) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  v1::RunStatus status;
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
  // The figures are recent: after two more marks, the old bytes no longer count.
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
  v1::RunStatus later;
  sync_->FillStatus(&later);
  EXPECT_EQ(later.bytes_received_per_step(), 500);
  EXPECT_EQ(later.bytes_sent_per_step(), 0);
}

TEST_F(SyncReplicasValuesTest, ANonFiniteGradientStopsTheRunEarly) {
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
  EXPECT_EQ(failures_[0].message(), "the gradient of w of step 2 is not finite (sent by worker-2)");
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(store_->values(), values);
  EXPECT_EQ(sync_->TakeSnapshot().values, values) << "the step is half applied";
}

TEST_F(SyncReplicasValuesTest, ASecondTokenFindsItsStepsValues) {
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

TEST_F(SyncReplicasValuesTest, AWaitingWorkerGetsValuesWithItsToken) {
  Start(1);
  const auto a = Connect(1), b = Connect(2), spare = Connect(3), delayed = Connect(4);
  for (FrameWorker* worker : {a.get(), b.get(), spare.get()}) ASSERT_TRUE(worker->Ask().ok());
  ASSERT_TRUE(delayed->Ask(/*startup_delay_steps=*/50).ok());
  ASSERT_TRUE(a->token() && b->token());
  // Half of the next values are final when the workers that compute them die.
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

TEST_F(SyncReplicasValuesTest, SetValuesReplaceThoseSentEarly) {
  Start(/*slots=*/2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  ASSERT_TRUE(a->Push().ok());
  StepFrame first = b->NewFrame(*b->token());
  b->AddReports(&first);
  b->AddPiece(0, 0, 3, &first);
  ASSERT_TRUE(b->Send(first).ok());
  a->Drain();
  EXPECT_EQ(a->pieces().at(2), 1) << "of w, which is final";
  EXPECT_EQ(sync_->HoldForChange(), 2);
  StepFrame rest = b->NewFrame(*b->token());
  b->AddPiece(2, 0, 65540, &rest);
  rest.end = true;
  b->ForgetToken();
  ASSERT_TRUE(b->Send(rest).ok());
  EXPECT_EQ(sync_->AwaitHeld(), 2);
  ASSERT_TRUE(sync_->Assign({{"w", Tensor::FromValues<float>({3}, {10, 20, 30})}}).ok());
  sync_->ReleaseAfterChange();
  for (FrameWorker* worker : {a.get(), b.get()}) {
    EXPECT_TRUE(worker->closed().ok()) << worker->closed();
    worker->Drain();
    ASSERT_TRUE(worker->token());
    EXPECT_EQ(worker->token()->step(), 2);
    EXPECT_EQ(worker->value(0, 2), 30);
    EXPECT_NE(worker->value(2, 65539), 0);
  }
  EXPECT_EQ(a->pieces().at(2), 5) << "four, and w once more";
  EXPECT_EQ(b->pieces().at(2), 4);
}

TEST_F(SyncReplicasValuesTest, WhyValuesCannotBeSetIsSaid) {
  Start(/*slots=*/1, /*total_steps=*/1);
  EXPECT_TRUE(absl::IsFailedPrecondition(sync_->CheckAssign({}))) << "a step is in progress";
  auto worker = Connect(1);
  ASSERT_TRUE(worker->Ask().ok());
  ASSERT_TRUE(worker->Push().ok());
  EXPECT_TRUE(absl::IsOutOfRange(sync_->CheckAssign({}))) << "the run is over";
  EXPECT_TRUE(absl::IsOutOfRange(sync_->Assign({})));
  worker.reset();
  Start(/*slots=*/1);
  sync_->Stop();
  EXPECT_TRUE(absl::IsCancelled(sync_->CheckAssign({})));
  EXPECT_TRUE(absl::IsCancelled(sync_->Assign({})));
}

}  // namespace
}  // namespace lockstep
