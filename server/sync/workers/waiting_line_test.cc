#include "lockstep/server/sync/workers/waiting_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1000);

// Returns a worker that waits for a token and starts at this global step.
WorkerState Waiting(int64_t start) {
  WorkerState worker("worker", kNow);
  worker.SetStart(start);
  EXPECT_TRUE(worker.OnAsk().ok());
  return worker;
}

TEST(WaitingLineTest, TheLongestWaitComesFirst) {
  WaitingLine line;
  line.Update(7, Waiting(0));
  line.Update(3, Waiting(0));
  line.Update(7, Waiting(0));
  EXPECT_THAT(line.Ready(0), ElementsAre(7, 3));
  line.Remove(7);
  EXPECT_THAT(line.Ready(0), ElementsAre(3));
}

TEST(WaitingLineTest, AWorkerWithATokenDoesNotWait) {
  WaitingLine line;
  WorkerState worker = Waiting(0);
  line.Update(1, worker);
  worker.OnAssigned({0, {0, 1}}, kNow);
  line.Update(1, worker);
  EXPECT_THAT(line.Ready(0), IsEmpty());
}

TEST(WaitingLineTest, ASilentWorkerDoesNotWait) {
  WaitingLine line;
  WorkerState worker = Waiting(0);
  worker.OnAssigned({0, {0, 1}}, kNow);
  worker.OnLeaseEnded();
  line.Update(1, worker);
  EXPECT_THAT(line.Ready(0), IsEmpty());
  worker.OnHeard(kNow);
  line.Update(1, worker);
  EXPECT_THAT(line.Ready(0), ElementsAre(1));
}

TEST(WaitingLineTest, AStartupDelayIsWaitedFor) {
  WaitingLine line;
  line.Update(1, Waiting(0));
  line.Update(2, Waiting(10));
  EXPECT_THAT(line.Ready(9), ElementsAre(1));
  EXPECT_THAT(line.Ready(10), ElementsAre(1, 2));
}

TEST(WaitingLineTest, TheShortestDelayStartsALoneRun) {
  WaitingLine line;
  line.Update(1, Waiting(20));
  line.Update(2, Waiting(10));
  EXPECT_THAT(line.Ready(0), ElementsAre(2));
  EXPECT_THAT(line.Ready(0), ElementsAre(2)) << "one is enough";
}

}  // namespace
}  // namespace lockstep
