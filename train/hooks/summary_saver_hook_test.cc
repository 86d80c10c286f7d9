#include "lockstep/train/hooks/summary_saver_hook.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class SummarySaverHookTest : public ::testing::Test {
 protected:
  std::unique_ptr<SummarySaverHook> Make(const Period& period, bool exact = false) {
    SummarySaverOptions options;
    options.period = period;
    options.clock = &clock_;
    options.exact = exact;
    // Counts its calls.
    options.provider = [this](Session&, int64_t step) -> absl::StatusOr<v1::Summary> {
      SummaryBuilder builder;
      builder.AddScalar("counter", static_cast<float>(++asked_));
      return builder.Build(step).summary();
    };
    return *SummarySaverHook::Create(options);
  }

  static std::vector<std::pair<int64_t, float>> Scalars(HookedRun& run) {
    std::vector<std::pair<int64_t, float>> scalars;
    for (const auto& scalar : run.base().scalars()) scalars.emplace_back(scalar.step, scalar.value);
    return scalars;
  }

  SimulatedClock clock_;
  int asked_ = 0;
};

TEST_F(SummarySaverHookTest, SavesTheFirstRunAndThenEverySoManySteps) {
  const auto hook = Make(Period::Steps(8));
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run(30).ok());
  EXPECT_THAT(Scalars(run), ElementsAre(Pair(1, 1), Pair(9, 2), Pair(17, 3), Pair(25, 4)));
  EXPECT_EQ(asked_, 4);
}

TEST_F(SummarySaverHookTest, SavesWithAPeriodOfTime) {
  const auto hook = Make(Period::Time(absl::Seconds(9)));
  HookedRun run({hook.get()});
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(run.Run().ok());
    clock_.Advance(absl::Seconds(3.1));
  }
  EXPECT_THAT(Scalars(run), ElementsAre(Pair(1, 1), Pair(4, 2), Pair(7, 3)));
}

TEST_F(SummarySaverHookTest, GatesOnlyWhereItIsDueAndOnlyWhenItIsToBeExact) {
  const auto lagging = Make(Period::Steps(4));
  EXPECT_FALSE(lagging->GatesAt(1));
  const auto exact = Make(Period::Steps(4), /*exact=*/true);
  std::vector<int64_t> steps;
  HookedRun run({exact.get()});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(run.Run().ok());
    steps.push_back(run.base().newest());
  }
  // The run is held at steps 1, 5 and 9; after each Run, the next steps may proceed.
  EXPECT_THAT(steps, ElementsAre(5, 5, 5, 5, 9, 9, 9, 9, 13, 13));
}

TEST_F(SummarySaverHookTest, WritesHistograms) {
  SummarySaverOptions options;
  options.period = Period::Steps(1);
  options.provider = [](Session& session, int64_t step) -> absl::StatusOr<v1::Summary> {
    const auto read = session.Read({"v"});
    SummaryBuilder builder;
    const absl::Status added = builder.AddHistogram("v", read->values[0].value.flat<float>());
    if (!added.ok()) return added;
    return builder.Build(step).summary();
  };
  options.exact = true;
  const auto hook = *SummarySaverHook::Create(options);
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run().ok());
  ASSERT_EQ(run.base().summaries().size(), 1);
  const auto& histogram = run.base().summaries()[0].value(0).histo();
  EXPECT_EQ(histogram.min(), 1);
  EXPECT_EQ(histogram.max(), 2);
}

TEST_F(SummarySaverHookTest, AnErrorOfTheProviderIsOneOfTheHook) {
  SummarySaverOptions options;
  options.period = Period::Steps(1);
  options.provider = [](Session&, int64_t) -> absl::StatusOr<v1::Summary> { return absl::InternalError("no data"); };
  const auto hook = *SummarySaverHook::Create(options);
  HookedRun run({hook.get()});
  EXPECT_EQ(run.Run(), absl::InternalError("hook SummarySaverHook: no data"));
}

TEST_F(SummarySaverHookTest, WrongOptionsAreNamed) {
  SummarySaverOptions options;
  EXPECT_THAT(SummarySaverHook::Create(options).status().message(), HasSubstr("neither steps and time"));
  options.period = Period::Steps(1);
  const absl::Status status = SummarySaverHook::Create(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("SummarySaverHook has no provider"));
}

}  // namespace
}  // namespace lockstep::train
