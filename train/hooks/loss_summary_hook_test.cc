#include "lockstep/train/hooks/loss_summary_hook.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LossSummaryHookTest, WritesTheLossAtOnceThenPeriodically) {
  const auto hook = LossSummaryHook::Create({Period::Steps(8), Clock::Real()}).value();
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run(20).ok());
  std::vector<int64_t> steps;
  for (const auto& scalar : run.base().scalars()) {
    EXPECT_EQ(scalar.tag, "loss");
    EXPECT_EQ(scalar.value, 1.0F / static_cast<float>(scalar.step));
    steps.push_back(scalar.step);
  }
  EXPECT_THAT(steps, ElementsAre(1, 9, 17));
}

TEST(LossSummaryHookTest, RefusesAWrongPeriod) {
  EXPECT_THAT(LossSummaryHook::Create({Period::Steps(0), Clock::Real()}).status().message(),
              HasSubstr("LossSummaryHook: "));
}

}  // namespace
}  // namespace lockstep::train
