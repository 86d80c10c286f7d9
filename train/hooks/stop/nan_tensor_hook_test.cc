#include "lockstep/train/hooks/stop/nan_tensor_hook.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

std::unique_ptr<NanTensorHook> Make(const std::string& tensor, bool fail_on_nan) {
  NanTensorOptions options;
  options.tensor = tensor;
  options.fail_on_nan = fail_on_nan;
  return *NanTensorHook::Create(options);
}

FakeSession::Options NanAt(int64_t nan_step) {
  FakeSession::Options options;
  options.loss = [nan_step](int64_t step) { return step == nan_step ? std::nan("") : 1.0; };
  return options;
}

TEST(NanTensorHookTest, ALossThatIsNaNIsAnError) {
  const auto hook = Make("loss", true);
  HookedRun run({hook.get()}, NanAt(3));
  ASSERT_TRUE(run.Run(2).ok());
  EXPECT_EQ(run.Run(), absl::InvalidArgumentError("hook NanTensorHook: loss is NaN at global step 3"));
  EXPECT_EQ(run.base().newest(), 3);
  EXPECT_TRUE(run.base().stopped() && !run.base().closed());
}

TEST(NanTensorHookTest, OrAWarningAndAGoodEnd) {
  const auto hook = Make("loss", false);
  HookedRun run({hook.get()}, NanAt(3));
  EXPECT_TRUE(run.RunToTheEnd().ok());
  EXPECT_EQ(run.base().newest(), 3);
  EXPECT_EQ(run.base().stop_reason(), "hook NanTensorHook: loss is NaN at global step 3");
  EXPECT_TRUE(run.Close().ok());
}

TEST(NanTensorHookTest, AnInfiniteLossIsNoNaN) {
  const auto hook = Make("loss", true);
  FakeSession::Options options;
  options.loss = [](int64_t) { return INFINITY; };
  HookedRun run({hook.get()}, options);
  EXPECT_TRUE(run.Run(3).ok());
}

TEST(NanTensorHookTest, LooksAtEachElementOfAVariable) {
  const auto hook = Make("v", true);
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run(2).ok());
  ASSERT_TRUE(run.base().Assign({NamedTensor{"w", Tensor::FromValues<float>({}, {std::nanf("")})}}).ok());
  EXPECT_EQ(run.Run(), absl::InvalidArgumentError("hook NanTensorHook: v is NaN at global step 3"));
}

TEST(NanTensorHookTest, WhatCannotBeNaNIsAnError) {
  const auto hook = Make("global_step", true);
  HookedRun run({hook.get()});
  EXPECT_EQ(run.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NanTensorHookTest, ATensorIsExpected) {
  NanTensorOptions options;
  options.tensor = "";
  EXPECT_EQ(NanTensorHook::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep::train
