#include "lockstep/train/hooks/stop/stop_at_step_hook.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<StopAtStepHook> NumSteps(int64_t steps) {
  StopAtStepOptions options;
  options.num_steps = steps;
  return *StopAtStepHook::Create(options);
}

std::unique_ptr<StopAtStepHook> LastStep(int64_t step) {
  StopAtStepOptions options;
  options.last_step = step;
  return *StopAtStepHook::Create(options);
}

FakeSession::Options At(int64_t step) {
  FakeSession::Options options;
  options.step = step;
  return options;
}

// Returns true if the hook stops after a run that brings the global step to `step`.
bool StopsAt(StopAtStepHook* hook, int64_t step) {
  FakeSession::Options options = At(step);
  FakeSession session(options);
  RunContext context(&session);
  RunValues values;
  values.result.global_step = step;
  EXPECT_TRUE(hook->AfterRun(context, values).ok());
  return context.stop_requested();
}

TEST(StopAtStepHookTest, StopsAtTheLastStepAndBehindIt) {
  const auto hook = LastStep(10);
  std::vector<bool> stops;
  for (const int64_t step : {5, 9, 10, 11}) stops.push_back(StopsAt(hook.get(), step));
  EXPECT_THAT(stops, ElementsAre(false, false, true, true));
}

TEST(StopAtStepHookTest, CountsNumStepsFromTheFirstSession) {
  const auto hook = NumSteps(10);
  FakeSession at_5(At(5));
  ASSERT_TRUE(hook->AfterCreateSession(at_5).ok());
  // A recovery does not change the target.
  FakeSession at_7(At(7));
  ASSERT_TRUE(hook->AfterCreateSession(at_7).ok());
  std::vector<bool> stops;
  for (const int64_t step : {13, 14, 15}) stops.push_back(StopsAt(hook.get(), step));
  EXPECT_THAT(stops, ElementsAre(false, false, true));
}

TEST(StopAtStepHookTest, TheRunEndsExactlyThere) {
  const auto hook = LastStep(10);
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_EQ(run.base().newest(), 10);
  EXPECT_EQ(run.base().stop_reason(), "hook StopAtStepHook: global step 10 is reached");
}

TEST(StopAtStepHookTest, OneRunHappensBehindTheLastStep) {
  const auto hook = LastStep(10);
  HookedRun run({hook.get()}, At(20));
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_EQ(run.base().newest(), 21);
}

TEST(StopAtStepHookTest, GatesFromTheLastStepOn) {
  const auto hook = LastStep(10);
  EXPECT_FALSE(hook->GatesAt(9));
  EXPECT_TRUE(hook->GatesAt(10));
  EXPECT_TRUE(hook->GatesAt(11));
}

TEST(StopAtStepHookTest, ARestartOfTheChiefDoesNotExtendIt) {
  for (int killed_at = 0; killed_at <= 10; ++killed_at) {
    const auto first = NumSteps(10);
    HookedRun run({first.get()}, At(5));
    ASSERT_TRUE(run.Run(killed_at < 10 ? killed_at : 9).ok());
    const auto second = NumSteps(10);
    HookedRun next({second.get()}, run.base().NextLife());
    ASSERT_TRUE(next.RunToTheEnd().ok());
    EXPECT_EQ(next.base().newest(), 15) << killed_at;
  }
}

TEST(StopAtStepHookTest, RestartsItsCountAfterAGoodEndOrANewNumber) {
  const auto first = NumSteps(10);
  HookedRun run({first.get()});
  ASSERT_TRUE(run.RunToTheEnd().ok());
  const auto second = NumSteps(10);
  HookedRun next({second.get()}, run.base().NextLife());
  ASSERT_TRUE(next.Run(3).ok());
  EXPECT_FALSE(next.ShouldStop());
  const int64_t begin = next.base().newest();
  const auto third = NumSteps(5);
  HookedRun last({third.get()}, next.base().NextLife());
  ASSERT_TRUE(last.RunToTheEnd().ok());
  EXPECT_EQ(last.base().newest(), begin + 5);
}

TEST(StopAtStepHookTest, MayBeAddedToARunAndLeftOutOnceItHasStopped) {
  HookedRun without({});
  ASSERT_TRUE(without.Run(3).ok());
  const auto added = NumSteps(100);
  HookedRun with({added.get()}, without.base().NextLife());
  ASSERT_TRUE(with.status().ok()) << with.status();
  ASSERT_TRUE(with.Run().ok());
  EXPECT_EQ(HookedRun({}, with.base().NextLife()).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(with.RunToTheEnd().ok());
  EXPECT_TRUE(HookedRun({}, with.base().NextLife()).status().ok());
}

TEST(StopAtStepHookTest, OnAWorkerItStopsItsLoopAlone) {
  FakeSession::Options options;
  options.chief = false;
  for (int64_t step = 1; step <= 5; ++step) {
    StepResult block;
    block.global_step = step;
    options.blocks.push_back(block);
  }
  const auto hook = LastStep(3);
  HookedRun run({hook.get()}, options);
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_EQ(run.base().newest(), 3);
  EXPECT_EQ(run.base().stop_reason(), "");
}

TEST(StopAtStepHookTest, ExactlyOneOfBothIsExpected) {
  StopAtStepOptions options;
  EXPECT_THAT(StopAtStepHook::Create(options).status().message(), HasSubstr("neither num_steps and last_step"));
  options.num_steps = 1;
  options.last_step = 1;
  const absl::Status both = StopAtStepHook::Create(options).status();
  EXPECT_EQ(both.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(both.message(), HasSubstr("both num_steps and last_step where exactly one"));
  options.last_step = absl::nullopt;
  options.num_steps = 0;
  EXPECT_THAT(StopAtStepHook::Create(options).status().message(), HasSubstr("num_steps is 0 where at least 1"));
}

}  // namespace
}  // namespace lockstep::train
