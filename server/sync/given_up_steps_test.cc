// Tests steps that are given up because no worker computes them any longer when the run must be held or must end, and
// what happens next.
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/server/sync/testing/sync_replicas_fixture.h"

namespace lockstep {
namespace {

using ::testing::IsEmpty;

class GivenUpStepsTest : public SyncReplicasFixture {
 protected:
  // Sends the gradients of "big" for the worker's block, which the chief sums and, where possible, applies.
  static void SendBig(FrameWorker* worker) {
    StepFrame frame = worker->NewFrame(*worker->token());
    worker->AddReports(&frame);
    worker->AddPiece(2, 0, 65540, &frame);
    ASSERT_TRUE(worker->Send(frame).ok());
    worker->Drain();
  }
  // Computes two steps with one worker.
  void ComputeTwoSteps(uint64_t session) {
    const auto worker = Connect(session);
    ASSERT_TRUE(worker->Ask().ok());
    ASSERT_TRUE(worker->Push().ok());
    ASSERT_TRUE(worker->Push().ok());
  }
  // Returns all elements of all variables, without the padding between them.
  std::vector<float> ValuesNow() const {
    const VariableSnapshot snapshot = sync_->TakeSnapshot();
    std::vector<float> values;
    for (const auto& variable : snapshot.layout->variables()) {
      const float* const first = snapshot.values->as<float>() + variable.flat_offset;
      values.insert(values.end(), first, first + variable.elements);
    }
    return values;
  }
};

TEST_F(GivenUpStepsTest, TheRestartedStepYieldsTheSameBits) {
  Start(2);
  auto whole = Connect(1);
  ASSERT_TRUE(whole->Ask().ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(whole->Push().ok());
  const std::vector<float> expected = ValuesNow();
  whole.reset();

  Start(2);
  auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  // Half of the step has been applied and sent to its contributors when one worker dies and the other freezes.
  SendBig(b.get());
  ASSERT_TRUE(a->Push().ok());
  EXPECT_EQ(a->pieces().at(2), 2);
  b->connection()->Close();
  a->Drain();
  ASSERT_TRUE(a->token()) << "of the other slot";
  EXPECT_EQ(sync_->HoldForChange(), 2);
  clock_.Advance(kLease);
  sync_->Tick();
  EXPECT_EQ(sync_->AwaitHeld(), 1);
  EXPECT_EQ(sync_->step(), 1);
  sync_->ReleaseAfterChange();
  EXPECT_TRUE(absl::IsAborted(a->closed())) << a->closed();
  ComputeTwoSteps(3);
  EXPECT_EQ(sync_->step(), 3);
  EXPECT_TRUE(ValuesNow() == expected);
}

TEST_F(GivenUpStepsTest, WhatIsSetThereCounts) {
  Start(1);
  auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  SendBig(a.get());
  EXPECT_EQ(sync_->HoldForChange(), 1) << "somebody computes";
  a.reset();
  EXPECT_EQ(sync_->AwaitHeld(), 0);
  ASSERT_TRUE(sync_->Assign({{"w", Tensor::FromValues<float>({3}, {10, 20, 30})}}).ok());
  sync_->ReleaseAfterChange();
  const auto b = Connect(2);
  ASSERT_TRUE(b->Ask().ok());
  ASSERT_TRUE(b->Push().ok());
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(b->value(0, 2), 29);
  EXPECT_EQ(b->value(2, 0), -1) << "what was contributed before counts no more";
}

// Gradients computed with the values before an assignment must not be compared with those computed after it.
TEST_F(GivenUpStepsTest, AnAuditDoesNotCompareAcrossIt) {
  config::v1::AuditConfig audit;
  audit.set_fraction(1);
  audit.set_on_mismatch(config::v1::AuditConfig::FAIL);
  Start(2, /*total_steps=*/100, /*snapshot_every_steps=*/0, {}, audit);
  auto a = Connect(1), b = Connect(2);
  StartStepOne({a.get(), b.get()});
  a->Err();
  ASSERT_TRUE(a->Push().ok());
  a.reset();
  b.reset();
  sync_->HoldForChange();
  EXPECT_EQ(sync_->AwaitHeld(), 1);
  sync_->ReleaseAfterChange();
  const auto c = Connect(3), d = Connect(4);
  ASSERT_TRUE(c->Ask().ok());
  ASSERT_TRUE(d->Ask().ok());
  while (sync_->step() < 2) {
    for (FrameWorker* worker : {c.get(), d.get()}) {
      worker->Drain();
      if (!worker->token()) continue;
      ASSERT_TRUE(worker->Push().ok());
    }
  }
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(GivenUpStepsTest, AnEndDoesNotWaitForAWorkerThatLeaves) {
  Start(1);
  auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  ASSERT_TRUE(a->Push().ok());
  const int64_t boundary = sync_->HoldForChange();
  EXPECT_EQ(boundary, 2);
  sync_->EndAt(boundary);
  sync_->ReleaseAfterChange();
  EXPECT_EQ(completions_, 0) << "the worker may still compute it";
  ASSERT_TRUE(a->Leave().ok());
  EXPECT_EQ(completions_, 1);
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(sync_->total_steps(), 1);
}

TEST_F(GivenUpStepsTest, WhoWaitsForAHeldRunLearnsThatItHasEnded) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  sync_->HoldForChange();
  absl::optional<int64_t> held = 7;
  std::thread waiting([&] { held = sync_->AwaitHeld(); });
  sync_->Stop();
  waiting.join();
  EXPECT_FALSE(held);
  EXPECT_FALSE(sync_->AwaitHeld());
}

}  // namespace
}  // namespace lockstep
