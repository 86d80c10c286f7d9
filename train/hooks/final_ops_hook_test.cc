#include "lockstep/train/hooks/final_ops_hook.h"

#include <memory>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

TEST(FinalOpsHookTest, ReadsVariablesAtTheEnd) {
  FinalOpsOptions options;
  options.variables = {"w"};
  const auto hook = *FinalOpsHook::Create(options);
  FakeSession::Options session;
  session.total_steps = 3;
  HookedRun run({hook.get()}, session);
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_FALSE(hook->final_values().has_value());
  ASSERT_TRUE(run.Close().ok());
  ASSERT_TRUE(hook->final_values().has_value());
  EXPECT_EQ(hook->final_values()->global_step, 3);
  EXPECT_EQ(hook->final_values()->values[0].value.flat<float>()[0], 3);
}

TEST(FinalOpsHookTest, CallsAFunctionWithTheSession) {
  FinalOpsOptions options;
  int64_t step = -1;
  options.function = [&](Session& session) {
    step = *session.GlobalStep();
    return absl::OkStatus();
  };
  const auto hook = *FinalOpsHook::Create(options);
  FakeSession::Options session;
  session.total_steps = 3;
  HookedRun run({hook.get()}, session);
  ASSERT_TRUE(run.RunToTheEnd().ok());
  ASSERT_TRUE(run.Close().ok());
  EXPECT_EQ(step, 3);
}

TEST(FinalOpsHookTest, OutOfRangeIsAnErrorAtTheEnd) {
  FinalOpsOptions options;
  options.function = [](Session&) { return absl::OutOfRangeError("no more records"); };
  const auto hook = *FinalOpsHook::Create(options);
  HookedRun run({hook.get()});
  EXPECT_EQ(run.Close(), absl::OutOfRangeError("hook FinalOpsHook: no more records"));
  EXPECT_TRUE(run.base().closed());
}

TEST(FinalOpsHookTest, SomethingToEvaluateIsExpected) {
  EXPECT_EQ(FinalOpsHook::Create({}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep::train
