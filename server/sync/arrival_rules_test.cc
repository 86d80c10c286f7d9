// Tests the rows of the first table in docs/sync.md that concern non-finite losses, the `stop` of a report, and update
// ops, for the policies whose weights depend on the order of arrival.
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/policy/async.h"
#include "lockstep/server/sync/policy/first_arrivals.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/server/sync/testing/sync_replicas_fixture.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Change = std::function<void(v1::SlotReport*)>;

void Spoil(v1::SlotReport* report) { report->set_loss(std::numeric_limits<float>::quiet_NaN()); }
void Stop(v1::SlotReport* report) { report->set_stop(true); }

// Returns a change that sets a report's update-op values for "mean".
Change Assigns(float first, float second) {
  return [first, second](v1::SlotReport* report) {
    const float mean[2] = {first, second};
    report->set_update(0, std::string(reinterpret_cast<const char*>(mean), sizeof(mean)));
  };
}

class ArrivalRulesTest : public SyncReplicasFixture {
 protected:
  void StartAsync() {
    policy_ = std::make_unique<AsyncPolicy>(AsyncPolicy::Options(), /*step=*/0, std::vector<int64_t>());
    Start(/*slots=*/1);
    Join(2);
  }
  // Each step takes two gradients; the third worker is a backup.
  void StartFirstArrivals() {
    FirstArrivalsPolicy::Options options;
    options.replicas_to_aggregate = 2;
    options.total_replicas = 3;
    options.initial_tokens = 0;
    options.lease = kLease;
    policy_ = std::make_unique<FirstArrivalsPolicy>(options, /*step=*/0);
    Start(/*slots=*/2);
    Join(3);
  }
  void Join(int workers) {
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(Connect(i + 1));
      ASSERT_TRUE(workers_.back()->Ask().ok());
      ASSERT_TRUE(workers_.back()->token().has_value());
    }
  }
  void TearDown() override { workers_.clear(); }
  // Sends a worker's whole contribution for its token, with a modified report.
  void Push(int worker, const Change& change) {
    FrameWorker& sender = *workers_[worker];
    ASSERT_TRUE(sender.token().has_value());
    StepFrame frame = sender.NewFrame(*sender.token());
    sender.AddReports(&frame);
    change(&frame.reports[0]);
    sender.AddAllPieces(&frame);
    frame.end = true;
    ASSERT_TRUE(sender.Send(frame).ok());
    sender.ForgetToken();
    for (const auto& each : workers_) each->Drain();
  }
  void Push(int worker) {
    Push(worker, [](v1::SlotReport*) {});
  }
  std::vector<float> Mean() const {
    const float* const mean = store_->values()->as<float>() + store_->layout().variables()[1].flat_offset;
    return {mean[0], mean[1]};
  }
  // Expects that the run has ended at `step` without a failure.
  void ExpectEnd(int64_t step) const {
    EXPECT_EQ(completions_, 1);
    EXPECT_EQ(sync_->step(), step);
    EXPECT_EQ(sync_->total_steps(), step);
    EXPECT_THAT(failures_, IsEmpty());
  }

  std::vector<std::unique_ptr<FrameWorker>> workers_;
};

TEST_F(ArrivalRulesTest, NonFiniteContributionEndsAsyncBeforeItsStep) {
  non_finite_ = NonFinite::kEnds;
  StartAsync();
  Push(0);
  const auto values = store_->values();
  Push(1, Spoil);
  ExpectEnd(1);
  EXPECT_EQ(store_->values(), values);
  EXPECT_THAT(sync_->TakeSnapshot().stream_positions, ElementsAre(1, 0)) << "its batch does not count";
}

TEST_F(ArrivalRulesTest, NonFiniteContributionIsASkippedAsyncStep) {
  non_finite_ = NonFinite::kSkipsStep;
  StartAsync();
  const std::string before = Bytes(sync_->TakeSnapshot());
  Push(0, Spoil);
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(Bytes(sync_->TakeSnapshot()), before);
  EXPECT_THAT(sync_->TakeSnapshot().stream_positions, ElementsAre(1, 0)) << "its batch is spent";
  Push(1);
  EXPECT_EQ(sync_->step(), 2);
  EXPECT_NE(Bytes(sync_->TakeSnapshot()), before);
}

TEST_F(ArrivalRulesTest, StopEndsAsyncAtTheStepThatItMakes) {
  StartAsync();
  Push(0);
  Push(1, Stop);
  ExpectEnd(2);
}

TEST_F(ArrivalRulesTest, AsyncUpdatesMayGoBackToOlderSteps) {
  StartAsync();
  Push(0, Assigns(10, 10));
  Push(0, Assigns(11, 11));
  Push(1, Assigns(20, 20));  // computed at step 0
  EXPECT_EQ(sync_->step(), 3);
  EXPECT_THAT(Mean(), ElementsAre(20, 20));
}

TEST_F(ArrivalRulesTest, NonFiniteArrivalEndsTheRunBeforeItsStep) {
  non_finite_ = NonFinite::kEnds;
  StartFirstArrivals();
  const auto values = store_->values();
  Push(2);
  Push(0, Spoil);
  ExpectEnd(0);
  EXPECT_EQ(store_->values(), values);
}

TEST_F(ArrivalRulesTest, NonFiniteArrivalSkipsItsStep) {
  non_finite_ = NonFinite::kSkipsStep;
  StartFirstArrivals();
  const std::string before = Bytes(sync_->TakeSnapshot());
  Push(1, Spoil);
  EXPECT_EQ(sync_->step(), 0) << "a step has two contributions";
  Push(2);
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_EQ(Bytes(sync_->TakeSnapshot()), before);
}

TEST_F(ArrivalRulesTest, StaleReportNeitherEndsNorSpoilsTheRun) {
  non_finite_ = NonFinite::kEnds;
  StartFirstArrivals();
  Push(0);
  Push(1);
  Push(2, [](v1::SlotReport* report) {
    Spoil(report);
    Stop(report);
  });
  EXPECT_THAT(workers_[2]->results(), ElementsAre(v1::CONTRIBUTION_STALE));
  EXPECT_EQ(completions_, 0);
  EXPECT_EQ(sync_->step(), 1);
  Push(0);
  Push(2);
  EXPECT_EQ(sync_->step(), 2);
}

TEST_F(ArrivalRulesTest, StopEndsFirstArrivalsAtItsStep) {
  StartFirstArrivals();
  Push(1, Stop);
  EXPECT_EQ(completions_, 0);
  Push(0);
  ExpectEnd(1);
}

TEST_F(ArrivalRulesTest, UpdatesAreFoldedInTheOrderOfArrival) {
  StartFirstArrivals();
  Push(2, Assigns(3, 3));
  Push(0, Assigns(1, 1));
  Push(1, Assigns(2, 2));  // stale
  EXPECT_EQ(sync_->step(), 1);
  EXPECT_THAT(Mean(), ElementsAre(1, 1));
}

}  // namespace
}  // namespace lockstep
