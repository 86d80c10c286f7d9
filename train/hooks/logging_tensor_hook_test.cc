#include "lockstep/train/hooks/logging_tensor_hook.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoggingTensorHookTest : public ::testing::Test {
 protected:
  LoggingTensorOptions Options(std::vector<std::string> tensors) {
    LoggingTensorOptions options;
    options.tensors = std::move(tensors);
    options.log = [this](const std::string& line) { lines_.push_back(line); };
    options.clock = &clock_;
    return options;
  }

  SimulatedClock clock_;
  std::vector<std::string> lines_;
};

TEST_F(LoggingTensorHookTest, LogsTheFirstRunAndThenEverySoMany) {
  auto options = Options({"global_step"});
  options.every_n_iter = 10;
  const auto hook = *LoggingTensorHook::Create(options);
  // Runs are counted, not global steps.
  FakeSession::Options session;
  session.step = 103;
  HookedRun run({hook.get()}, session);
  ASSERT_TRUE(run.Run(31).ok());
  EXPECT_THAT(lines_, ElementsAre("global_step = 104", "global_step = 114 (0.000 sec)", "global_step = 124 (0.000 sec)",
                                  "global_step = 134 (0.000 sec)"));
}

TEST_F(LoggingTensorHookTest, LogsWithAPeriodOfTime) {
  auto options = Options({"global_step"});
  options.every_n_secs = absl::Seconds(1);
  const auto hook = *LoggingTensorHook::Create(options);
  HookedRun run({hook.get()});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(run.Run().ok());
    clock_.Advance(absl::Milliseconds(600));
  }
  EXPECT_THAT(lines_, ElementsAre("global_step = 1", "global_step = 3 (1.200 sec)"));
}

TEST_F(LoggingTensorHookTest, LogsAtTheEndAlone) {
  auto options = Options({"loss", "w"});
  options.at_end = true;
  const auto hook = *LoggingTensorHook::Create(options);
  FakeSession::Options session;
  session.total_steps = 4;
  HookedRun run({hook.get()}, session);
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_THAT(lines_, IsEmpty());
  ASSERT_TRUE(run.Close().ok());
  EXPECT_THAT(lines_, ElementsAre("loss = 0.25, w = 4"));
}

TEST_F(LoggingTensorHookTest, ReadsVariablesAtTheirStepAndGatesNoOther) {
  auto options = Options({"v", "global_step"});
  options.every_n_iter = 4;
  const auto hook = *LoggingTensorHook::Create(options);
  HookedRun run({hook.get()});
  std::vector<int64_t> newest;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(run.Run().ok());
    newest.push_back(run.base().newest());
  }
  EXPECT_EQ(lines_[0], "v = [1 2], global_step = 1");
  EXPECT_THAT(lines_[2], HasSubstr("v = [9 18], global_step = 9"));
  EXPECT_EQ(run.base().reads(), 3);
  EXPECT_THAT(newest, ElementsAre(5, 5, 5, 5, 9, 9, 9, 9, 13, 13));
}

TEST_F(LoggingTensorHookTest, LossAndStepGateNothing) {
  auto options = Options({"loss", "global_step"});
  options.every_n_iter = 1;
  const auto hook = *LoggingTensorHook::Create(options);
  EXPECT_FALSE(hook->GatesAt(1));
}

TEST_F(LoggingTensorHookTest, TheLineMayBeAnother) {
  auto options = Options({"global_step"});
  options.every_n_iter = 1;
  options.formatter = [](const std::vector<std::pair<std::string, Tensor>>& values) {
    return absl::StrCat(values[0].first, "!");
  };
  const auto hook = *LoggingTensorHook::Create(options);
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run(2).ok());
  EXPECT_THAT(lines_, ElementsAre("global_step!", "global_step!")) << "nothing is put behind it";
}

TEST_F(LoggingTensorHookTest, AVariableThatThereIsNotEndsTheRunNamed) {
  auto options = Options({"bias"});
  options.every_n_iter = 1;
  const auto hook = *LoggingTensorHook::Create(options);
  HookedRun run({hook.get()});
  EXPECT_THAT(run.Run().message(), HasSubstr("reading bias for hook LoggingTensorHook"));
}

TEST_F(LoggingTensorHookTest, WrongOptionsAreNamed) {
  const auto message = [](const LoggingTensorOptions& options) {
    const absl::Status status = LoggingTensorHook::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  auto options = Options({"loss"});
  EXPECT_THAT(message(options), HasSubstr("neither steps and time"));
  options.every_n_iter = 0;
  EXPECT_THAT(message(options), HasSubstr("0 steps where at least 1"));
  options.every_n_iter = 5;
  options.every_n_secs = absl::Seconds(5);
  EXPECT_THAT(message(options), HasSubstr("both steps and time"));
  options.tensors.clear();
  EXPECT_THAT(message(options), HasSubstr("tensors are empty"));
  options.tensors = {"loss"};
  options.summarize = -2;
  EXPECT_THAT(message(options), HasSubstr("summarize is -2"));
}

}  // namespace
}  // namespace lockstep::train
