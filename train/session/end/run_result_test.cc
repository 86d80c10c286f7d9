#include "lockstep/train/session/end/run_result.h"

#include "gtest/gtest.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep::train {
namespace {

TEST(RunResultTest, FirstFailureExplainsTheStop) {
  RunResult result;
  EXPECT_EQ(result.Explain(absl::CancelledError("stopped")), absl::CancelledError("stopped"));
  result.Fail(absl::InvalidArgumentError("first"));
  result.Fail(absl::InternalError("second"));
  EXPECT_EQ(result.Explain(absl::CancelledError("stopped")), absl::InvalidArgumentError("first"));
  EXPECT_EQ(result.Explain(absl::DataLossError("the disk")), absl::DataLossError("the disk"));
  EXPECT_EQ(result.Explain(absl::OkStatus()), absl::OkStatus());
}

TEST(RunResultTest, RemembersARequestToFinish) {
  RunResult result;
  EXPECT_FALSE(result.finish_requested());
  result.RequestFinish();
  EXPECT_TRUE(result.finish_requested());
}

TEST(RunResultTest, AwaitReturnsTheResult) {
  RunResult result;
  const auto thread = Executor::Threads()->Start("chief", [&] { result.Set(absl::DataLossError("the disk")); });
  EXPECT_EQ(result.Await(), absl::DataLossError("the disk"));
  EXPECT_EQ(result.Await(), absl::DataLossError("the disk"));
  thread->Join();
}

}  // namespace
}  // namespace lockstep::train
