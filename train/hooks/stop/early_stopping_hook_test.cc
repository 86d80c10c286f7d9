#include "lockstep/train/hooks/stop/early_stopping_hook.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<EarlyStoppingHook> Make(int64_t patience, int64_t every_n_steps = 1) {
  EarlyStoppingOptions options;
  options.patience = patience;
  options.every_n_steps = every_n_steps;
  return *EarlyStoppingHook::Create(options);
}

// Returns options for a session whose loss is best at step 7 and never as good again.
FakeSession::Options BestAtSeven() {
  FakeSession::Options options;
  options.loss = [](int64_t step) { return step == 4 ? std::nan("") : std::abs(static_cast<double>(step) - 7.1); };
  return options;
}

TEST(EarlyStoppingHookTest, StopsAfterSoManyChecksWithoutAnImprovement) {
  const auto hook = Make(3);
  HookedRun run({hook.get()}, BestAtSeven());
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_EQ(run.base().newest(), 10);
  EXPECT_EQ(hook->best().step(), 7);
  EXPECT_THAT(run.base().stop_reason(), HasSubstr("no improvement in 3 checks up to global step 10: best 0.1 at 7"));
}

TEST(EarlyStoppingHookTest, ChecksAndGatesEverySoManySteps) {
  const auto hook = Make(2, 5);
  EXPECT_FALSE(hook->GatesAt(4));
  EXPECT_TRUE(hook->GatesAt(5));
  HookedRun run({hook.get()}, BestAtSeven());
  ASSERT_TRUE(run.RunToTheEnd().ok());
  // The losses are 2.1 at step 5, 2.9 at step 10, and 7.9 at step 15.
  EXPECT_EQ(run.base().newest(), 15);
  EXPECT_EQ(hook->best().step(), 5);
}

// Kills the chief at each step, once or before every check. The run must end at the same step.
TEST(EarlyStoppingHookTest, KillsOfTheChiefDoNotMoveTheEnd) {
  for (const int64_t every_n_steps : {1, 3}) {
    const auto undisturbed = Make(3, every_n_steps);
    HookedRun reference({undisturbed.get()}, BestAtSeven());
    ASSERT_TRUE(reference.RunToTheEnd().ok());
    const int64_t end = reference.base().newest();
    for (int life = 1; life < end; ++life) {
      FakeSession::Options session = BestAtSeven();
      for (int kills = 0; kills < 100; ++kills) {
        const auto hook = Make(3, every_n_steps);
        HookedRun run({hook.get()}, session);
        ASSERT_TRUE(run.status().ok()) << run.status();
        ASSERT_TRUE(run.RunToTheEnd(life).ok());
        if (run.ShouldStop()) {
          EXPECT_EQ(run.base().newest(), end) << "lives of " << life << " steps";
          EXPECT_EQ(hook->State(), undisturbed->State());
          break;
        }
        session = run.base().NextLife();
      }
    }
  }
}

TEST(EarlyStoppingHookTest, StaysStoppedIfAskedTo) {
  for (const bool stay_stopped : {true, false}) {
    EarlyStoppingOptions options;
    options.patience = 3;
    options.stay_stopped = stay_stopped;
    FakeSession::Options session = BestAtSeven();
    for (int start = 0; start < 3; ++start) {
      const auto hook = *EarlyStoppingHook::Create(options);
      HookedRun run({hook.get()}, session);
      ASSERT_TRUE(run.RunToTheEnd().ok());
      EXPECT_EQ(run.base().newest(), stay_stopped ? 10 : 10 + start);
      session = run.base().NextLife();
    }
  }
}

TEST(EarlyStoppingHookTest, WatchesAnythingOfTheStep) {
  EarlyStoppingOptions options;
  options.patience = 2;
  options.minimize = false;
  std::vector<int64_t> read_at;
  options.metric = [&](Session& session, const RunValues& values) -> absl::StatusOr<double> {
    const auto read = session.Read({"w"});
    if (!read.ok()) return read.status();
    EXPECT_EQ(read->global_step, values.result.global_step);
    const double w = read->values[0].value.flat<float>()[0];
    return w < 6 ? w : -w;
  };
  const auto hook = *EarlyStoppingHook::Create(options);
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_EQ(run.base().newest(), 7);
}

TEST(EarlyStoppingHookTest, AnErrorOfTheMetricIsOneOfTheHook) {
  EarlyStoppingOptions options;
  options.metric = [](Session&, const RunValues&) -> absl::StatusOr<double> { return absl::InternalError("no data"); };
  const auto hook = *EarlyStoppingHook::Create(options);
  HookedRun run({hook.get()});
  EXPECT_EQ(run.Run(), absl::InternalError("hook EarlyStoppingHook: no data"));
}

TEST(EarlyStoppingHookTest, AStateOfSomethingElseIsRefused) {
  EXPECT_EQ(Make(3)->SetState("x").code(), absl::StatusCode::kInvalidArgument);
}

TEST(EarlyStoppingHookTest, OptionsOutOfRangeAreNamed) {
  EarlyStoppingOptions options;
  options.patience = 0;
  EXPECT_EQ(EarlyStoppingHook::Create(options).status(),
            absl::InvalidArgumentError("EarlyStoppingHook's patience is 0 where at least 1 is expected"));
  options.patience = 1;
  options.every_n_steps = 0;
  EXPECT_THAT(EarlyStoppingHook::Create(options).status().message(), HasSubstr("every_n_steps is 0"));
  options.every_n_steps = 1;
  options.min_delta = -1;
  EXPECT_THAT(EarlyStoppingHook::Create(options).status().message(), HasSubstr("min_delta is -1"));
}

}  // namespace
}  // namespace lockstep::train
