#include "lockstep/server/sync/workers/step_rates.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(StepRatesTest, RatesAreSinceAMarkThatMovesOn) {
  StepRates rates(10, kStart);
  rates.OnReceived(1, 1000);
  rates.OnSent(1, 300);
  v1::RunStatus status;
  rates.FillRun(10, kStart, &status);
  EXPECT_EQ(status.steps_per_second(), 0);
  EXPECT_EQ(status.bytes_received_per_step(), 0) << "no step yet";
  rates.FillRun(14, kStart + absl::Seconds(2), &status);
  EXPECT_EQ(status.global_step(), 14);
  EXPECT_EQ(status.steps_per_second(), 2);
  EXPECT_EQ(status.bytes_received_per_step(), 250);
  EXPECT_EQ(status.bytes_sent_per_step(), 75);
  for (int i = 1; i <= 2; ++i) rates.MoveMarks(14, kStart + i * absl::Seconds(3));
  rates.OnReceived(1, 10);
  v1::RunStatus later;
  rates.FillRun(15, kStart + absl::Seconds(7), &later);
  EXPECT_EQ(later.steps_per_second(), 0.25);
  EXPECT_EQ(later.bytes_received_per_step(), 10) << "two marks later the old bytes are gone";
}

TEST(StepRatesTest, CountsOfTheRunOutliveItsWorkers) {
  StepRates rates(0, kStart);
  rates.AddWorker(0x12345, "a");
  rates.OnContributed(0x12345, v1::CONTRIBUTION_ACCEPTED, absl::Seconds(2));
  rates.OnContributed(0x12345, v1::CONTRIBUTION_DUPLICATE, absl::Seconds(1));
  rates.OnRejected(0x12345);
  rates.OnReceived(0x12345, 7);
  rates.OnSent(0x12345, 8);
  v1::WorkerStatus worker;
  rates.FillWorker(0x12345, &worker);
  EXPECT_EQ(worker.name(), "a");
  EXPECT_EQ(worker.session_id(), 0x2345u) << "whoever knows all of it acts for the worker";
  EXPECT_EQ(worker.accepted(), 1);
  EXPECT_EQ(worker.duplicate(), 1);
  EXPECT_EQ(worker.rejected(), 1);
  EXPECT_EQ(worker.bytes_received(), 7);
  EXPECT_EQ(worker.bytes_sent(), 8);
  EXPECT_EQ(worker.last_step_seconds(), 1);
  rates.RemoveWorker(0x12345);
  rates.OnContributed(0x12345, v1::CONTRIBUTION_ACCEPTED, absl::Seconds(1));
  v1::RunStatus status;
  rates.FillRun(0, kStart, &status);
  EXPECT_EQ(status.accepted(), 2);
  EXPECT_EQ(status.duplicate(), 1);
  EXPECT_EQ(status.rejected(), 1);
  v1::RunCounters counters;
  rates.FillCounters(&counters);
  EXPECT_EQ(counters.bytes_received(), 7);
  EXPECT_EQ(counters.bytes_sent(), 8);
  v1::WorkerStatus gone;
  rates.FillWorker(0x12345, &gone);
  EXPECT_EQ(gone.name(), "");
}

TEST(StepRatesTest, BytesAreCountedByTheirPath) {
  StepRates rates(0, kStart);
  rates.AddWorker(1, "a");
  rates.OnReceived(1, 1, WirePath::kTcp);
  rates.OnReceived(1, 20, WirePath::kUnixSocket);
  rates.OnReceived(1, 300, WirePath::kRing);
  rates.OnSent(1, 4000, WirePath::kTcp);
  rates.OnSent(1, 50000, WirePath::kUnixSocket);
  rates.RemoveWorker(1);
  rates.OnSent(1, 600000, WirePath::kRing);
  v1::RunCounters counters;
  rates.FillCounters(&counters);
  EXPECT_EQ(counters.bytes_received(), 321);
  EXPECT_EQ(counters.unix_bytes_received(), 20);
  EXPECT_EQ(counters.ring_bytes_received(), 300);
  EXPECT_EQ(counters.bytes_sent(), 654000);
  EXPECT_EQ(counters.unix_bytes_sent(), 50000);
  EXPECT_EQ(counters.ring_bytes_sent(), 600000);
}

TEST(StepRatesTest, TheLossIsShownOnceThereIsOne) {
  StepRates rates(0, kStart);
  v1::RunStatus status;
  rates.OnBegun(0.5);
  rates.FillRun(0, kStart, &status);
  EXPECT_FALSE(status.has_loss());
  EXPECT_EQ(status.learning_rate(), 0.5);
  rates.OnCommitted(1.25);
  rates.FillRun(1, kStart, &status);
  EXPECT_EQ(status.loss(), 1.25);
}

TEST(StepRatesTest, EveryResultIsCounted) {
  StepRates rates(0, kStart);
  rates.AddWorker(1, {"worker-1"});
  rates.OnContributed(1, v1::CONTRIBUTION_ACCEPTED, absl::Seconds(1));
  rates.OnContributed(1, v1::CONTRIBUTION_STALE, absl::Seconds(1));
  rates.OnContributed(1, v1::CONTRIBUTION_REJECTED, absl::Seconds(1));
  rates.OnContributed(2, v1::CONTRIBUTION_STALE, absl::Seconds(1));
  v1::WorkerStatus worker;
  rates.FillWorker(1, &worker);
  EXPECT_EQ(worker.accepted(), 1);
  EXPECT_EQ(worker.stale(), 1);
  EXPECT_EQ(worker.rejected(), 1);
  v1::RunStatus run;
  rates.FillRun(1, kStart, &run);
  EXPECT_EQ(run.stale(), 2) << "that of a worker that is gone, too";
}

}  // namespace
}  // namespace lockstep
