#include "lockstep/train/session/end/run_ending.h"

#include "gtest/gtest.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep::train {
namespace {

TEST(RunEndingTest, AStopThatAWorkerCausedIsExplainedByItsFirstError) {
  RunEnding ending;
  EXPECT_EQ(ending.Explain(absl::CancelledError("stopped")), absl::CancelledError("stopped"));
  ending.FailWorker(absl::InvalidArgumentError("first"));
  ending.FailWorker(absl::InternalError("second"));
  EXPECT_EQ(ending.Explain(absl::CancelledError("stopped")), absl::InvalidArgumentError("first"));
  EXPECT_EQ(ending.Explain(absl::DataLossError("the disk")), absl::DataLossError("the disk"));
  EXPECT_EQ(ending.Explain(absl::OkStatus()), absl::OkStatus());
}

TEST(RunEndingTest, AStopIsRemembered) {
  RunEnding ending;
  EXPECT_FALSE(ending.stop_requested());
  ending.RequestStop();
  EXPECT_TRUE(ending.stop_requested());
}

TEST(RunEndingTest, AwaitReturnsHowItEnded) {
  RunEnding ending;
  const auto thread = Executor::Threads()->Start("chief", [&] { ending.End(absl::DataLossError("the disk")); });
  EXPECT_EQ(ending.Await(), absl::DataLossError("the disk"));
  EXPECT_EQ(ending.Await(), absl::DataLossError("the disk"));
  thread->Join();
}

}  // namespace
}  // namespace lockstep::train
