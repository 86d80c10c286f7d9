#include "lockstep/train/hooks/step_counter_hook.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
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

class StepCounterHookTest : public ::testing::Test {
 protected:
  StepCounterOptions Options(const Period& period) { return {period, &clock_}; }

  // Performs `count` runs, with `pause` before each.
  void Run(HookedRun* run, int count, absl::Duration pause) {
    for (int i = 0; i < count; ++i) {
      clock_.Advance(pause);
      ASSERT_TRUE(run->Run().ok());
    }
  }

  static std::vector<int64_t> Steps(HookedRun& run) {
    std::vector<int64_t> steps;
    for (const auto& scalar : run.base().scalars()) {
      EXPECT_EQ(scalar.tag, "global_step/sec");
      steps.push_back(scalar.step);
    }
    return steps;
  }

  SimulatedClock clock_;
};

TEST_F(StepCounterHookTest, TheFirstStepStartsTheClock) {
  const auto hook = *StepCounterHook::Create(Options(Period::Steps(10)));
  HookedRun run({hook.get()});
  Run(&run, 30, absl::Seconds(0.5));
  EXPECT_THAT(Steps(run), ElementsAre(11, 21));
  EXPECT_FLOAT_EQ(run.base().scalars()[0].value, 2);
}

TEST_F(StepCounterHookTest, CountsWithAPeriodOfTime) {
  const auto hook = *StepCounterHook::Create(Options(Period::Time(absl::Milliseconds(100))));
  HookedRun run({hook.get()});
  Run(&run, 3, absl::Milliseconds(200));
  EXPECT_THAT(Steps(run), ElementsAre(2, 3));
  EXPECT_FLOAT_EQ(run.base().scalars()[0].value, 5);
}

TEST_F(StepCounterHookTest, OnAWorkerItOnlyLogs) {
  FakeSession::Options options;
  options.chief = false;
  options.blocks.resize(4);
  for (int i = 0; i < 4; ++i) options.blocks[i].global_step = i + 1;
  const auto hook = *StepCounterHook::Create(Options(Period::Steps(1)));
  HookedRun run({hook.get()}, options);
  Run(&run, 4, absl::Seconds(1));
  EXPECT_THAT(run.base().scalars(), IsEmpty());
}

TEST_F(StepCounterHookTest, ATimeThatStandsStillHasNoRate) {
  const auto hook = *StepCounterHook::Create(Options(Period::Steps(1)));
  HookedRun run({hook.get()});
  Run(&run, 3, absl::ZeroDuration());
  EXPECT_THAT(run.base().scalars(), IsEmpty());
}

TEST_F(StepCounterHookTest, GatesNothing) {
  const auto hook = *StepCounterHook::Create(Options(Period::Steps(1)));
  EXPECT_FALSE(hook->GatesAt(1));
}

TEST_F(StepCounterHookTest, AWrongPeriodIsNamed) {
  StepCounterOptions options;
  options.period = Period::Steps(0);
  const absl::Status status = StepCounterHook::Create(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("StepCounterHook: a period has 0 steps"));
}

}  // namespace
}  // namespace lockstep::train
