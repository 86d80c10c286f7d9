#include "lockstep/cli/report/run_progress.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

v1::RunStatus AtStep(int64_t step) {
  v1::RunStatus status;
  status.set_phase(v1::RunStatus::TRAINING);
  status.set_global_step(step);
  status.set_total_steps(1000);
  return status;
}

TEST(RunProgressTest, WritesOneLineOverAndOverOnATerminal) {
  RunProgress progress(true, 80);
  const absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(progress.Show(AtStep(1), now), "\r\x1b[Kstep 1/1000  0 workers");
  EXPECT_EQ(progress.Show(AtStep(2), now), "\r\x1b[Kstep 2/1000  0 workers");
  EXPECT_EQ(progress.Say("worker-1 was killed"), "\r\x1b[Kworker-1 was killed\n");
  EXPECT_EQ(progress.Say("starting it again"), "starting it again\n");
  EXPECT_EQ(progress.Show(AtStep(3), now), "\r\x1b[Kstep 3/1000  0 workers");
  EXPECT_EQ(progress.Finish(), "\n");
  EXPECT_EQ(progress.Finish(), "");
}

TEST(RunProgressTest, LeavesTheTerminalsLastColumnFree) {
  RunProgress progress(true, 13);
  EXPECT_EQ(progress.Show(AtStep(1), absl::UnixEpoch()), "\r\x1b[Kstep 1/1000");
}

TEST(RunProgressTest, WritesALineEveryFiveSecondsElsewhere) {
  RunProgress progress(false, 80);
  absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(progress.Show(AtStep(1), now), "step 1/1000  0 workers\n");
  EXPECT_EQ(progress.Show(AtStep(2), now + absl::Milliseconds(4999)), "");
  EXPECT_EQ(progress.Show(AtStep(3), now + absl::Seconds(5)), "step 3/1000  0 workers\n");
  EXPECT_EQ(progress.Say("hello"), "hello\n");
  EXPECT_EQ(progress.Finish(), "");
}

TEST(RunProgressTest, WritesALineAtEachTenthAndNewPhase) {
  RunProgress progress(false, 80);
  const absl::Time now = absl::UnixEpoch();
  v1::RunStatus waiting;
  EXPECT_EQ(progress.Show(waiting, now), "waiting for the first worker\n");
  EXPECT_EQ(progress.Show(waiting, now), "");
  EXPECT_EQ(progress.Show(AtStep(0), now), "step 0/1000  0 workers\n");
  EXPECT_EQ(progress.Show(AtStep(99), now), "");
  EXPECT_EQ(progress.Show(AtStep(100), now), "step 100/1000  0 workers\n");
  EXPECT_EQ(progress.Show(AtStep(350), now), "step 350/1000  0 workers\n");
  EXPECT_EQ(progress.Show(AtStep(399), now), "");
  // A restarted chief resumes from its checkpoint, which is at an earlier step.
  EXPECT_EQ(progress.Show(AtStep(200), now), "");
  EXPECT_EQ(progress.Show(AtStep(400), now), "step 400/1000  0 workers\n");
}

TEST(RunProgressTest, ShowsNothingForAFinishedRun) {
  v1::RunStatus status = AtStep(1000);
  status.set_phase(v1::RunStatus::FINISHED);
  EXPECT_EQ(RunProgress(true, 80).Show(status, absl::UnixEpoch()), "");
  EXPECT_EQ(RunProgress(false, 80).Show(status, absl::UnixEpoch()), "");
}

}  // namespace
}  // namespace lockstep
