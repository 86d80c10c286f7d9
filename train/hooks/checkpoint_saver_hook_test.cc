#include "lockstep/train/hooks/checkpoint_saver_hook.h"

#include <cstdint>
#include <memory>
#include <string>
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

class RecordingListener : public CheckpointListener {
 public:
  absl::Status Begin() override { return Note("begin"); }
  absl::Status BeforeSave(Session& session, int64_t step) override { return Note(absl::StrCat("before ", step)); }
  absl::StatusOr<bool> AfterSave(Session& session, int64_t step, const std::string& prefix) override {
    EXPECT_EQ(prefix, absl::StrCat("/run/model.ckpt-", step));
    (void)Note(absl::StrCat("after ", step));
    return ++saves_ == stop_after;
  }
  absl::Status End(Session& session, int64_t step) override { return Note(absl::StrCat("end ", step)); }

  // The number of the save after which to stop.
  int stop_after = 0;
  std::vector<std::string> calls;

 private:
  absl::Status Note(const std::string& call) {
    calls.push_back(call);
    return absl::OkStatus();
  }
  int saves_ = 0;
};

class CheckpointSaverHookTest : public ::testing::Test {
 protected:
  std::unique_ptr<CheckpointSaverHook> Make(const Period& period, std::vector<CheckpointListener*> listeners = {}) {
    CheckpointSaverOptions options;
    options.period = period;
    options.listeners = std::move(listeners);
    options.clock = &clock_;
    return *CheckpointSaverHook::Create(options);
  }

  // Returns the newest saved step after each of `runs` runs, without calling AfterCreateSession.
  std::vector<int64_t> NewestSaves(CheckpointSaverHook* hook, int runs, const std::vector<double>& times = {}) {
    FakeSession::Options options;
    options.gated = false;
    FakeSession session(options);
    std::vector<int64_t> newest;
    for (int i = 0; i < runs; ++i) {
      if (!times.empty() && i > 0) clock_.Advance(absl::Seconds(times[i]) - absl::Seconds(times[i - 1]));
      RunContext context(&session);
      RunValues values;
      values.result = *session.Run(TrainOp());
      EXPECT_TRUE(hook->AfterRun(context, values).ok());
      newest.push_back(session.saved_steps().back());
    }
    return newest;
  }

  SimulatedClock clock_;
};

TEST_F(CheckpointSaverHookTest, SavesBeforeTheFirstStep) {
  const auto hook = Make(Period::Steps(2));
  HookedRun run({hook.get()});
  EXPECT_THAT(run.base().saved_steps(), ElementsAre(0));
  ASSERT_TRUE(run.Run().ok());
  EXPECT_THAT(run.base().saved_steps(), ElementsAre(0));
  ASSERT_TRUE(run.Run().ok());
  EXPECT_THAT(run.base().saved_steps(), ElementsAre(0, 2));
}

TEST_F(CheckpointSaverHookTest, WithoutASessionsBeginTheFirstRunIsSaved) {
  const auto hook = Make(Period::Steps(2));
  EXPECT_THAT(NewestSaves(hook.get(), 5), ElementsAre(1, 1, 3, 3, 5));
}

TEST_F(CheckpointSaverHookTest, SavesWithAPeriodOfTime) {
  const auto hook = Make(Period::Time(absl::Seconds(2)));
  EXPECT_THAT(NewestSaves(hook.get(), 6, {0, 0.5, 2.5, 2.6, 2.7, 10}), ElementsAre(1, 1, 3, 3, 3, 6));
}

TEST_F(CheckpointSaverHookTest, ListenersAreToldOfEachSave) {
  RecordingListener listener;
  const auto hook = Make(Period::Steps(1), {&listener});
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run(2).ok());
  ASSERT_TRUE(run.base().RequestStop("enough").ok());
  const int64_t last = run.base().newest();
  EXPECT_THAT(listener.calls,
              ElementsAre("begin", "before 0", "after 0", "before 1", "after 1", "before 2", "after 2"));
  listener.calls.clear();
  ASSERT_TRUE(run.Close().ok());
  // The run continued, because nothing stopped it at step 2.
  EXPECT_EQ(last, 3);
  EXPECT_THAT(listener.calls, ElementsAre("before 3", "after 3", "end 3"));
}

// Saves nothing at the end if the last step has been saved.
TEST_F(CheckpointSaverHookTest, TheLastStepIsSavedOnce) {
  RecordingListener listener;
  const auto hook = Make(Period::Steps(1), {&listener});
  FakeSession::Options options;
  options.total_steps = 2;
  HookedRun run({hook.get()}, options);
  ASSERT_TRUE(run.RunToTheEnd().ok());
  ASSERT_TRUE(run.Close().ok());
  EXPECT_THAT(listener.calls,
              ElementsAre("begin", "before 0", "after 0", "before 1", "after 1", "before 2", "after 2", "end 2"));
}

TEST_F(CheckpointSaverHookTest, AListenerMayStopTheRunAtTheSavedStep) {
  RecordingListener listener, other;
  listener.stop_after = 3;
  const auto hook = Make(Period::Steps(2), {&listener, &other});
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_EQ(run.base().newest(), 4);
  EXPECT_THAT(run.base().saved_steps(), ElementsAre(0, 2, 4));
  EXPECT_EQ(other.calls.back(), "after 4");
}

TEST_F(CheckpointSaverHookTest, AListenerMayNotStopTheRunBeforeItBegins) {
  RecordingListener listener;
  listener.stop_after = 1;
  const auto hook = Make(Period::Steps(2), {&listener});
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run(3).ok());
  EXPECT_FALSE(run.ShouldStop());
}

TEST_F(CheckpointSaverHookTest, TheEndIsSaved) {
  const auto hook = Make(Period::Time(absl::Seconds(2)));
  FakeSession::Options options;
  options.total_steps = 2;
  HookedRun run({hook.get()}, options);
  ASSERT_TRUE(run.RunToTheEnd().ok());
  ASSERT_TRUE(run.Close().ok());
  EXPECT_THAT(run.base().saved_steps(), ElementsAre(0, 2));
}

TEST_F(CheckpointSaverHookTest, GatesWhereItSavesAndWhereItsListenersMayStop) {
  RecordingListener listener;
  FakeSession session;
  const auto steps = Make(Period::Steps(3));
  ASSERT_TRUE(steps->AfterCreateSession(session).ok());
  EXPECT_FALSE(steps->GatesAt(2));
  EXPECT_TRUE(steps->GatesAt(3));
  EXPECT_FALSE(Make(Period::Time(absl::Seconds(1)))->GatesAt(3));
  EXPECT_TRUE(Make(Period::Time(absl::Seconds(1)), {&listener})->GatesAt(3));
}

TEST_F(CheckpointSaverHookTest, AWrongPeriodIsNamed) {
  CheckpointSaverOptions options;
  options.clock = &clock_;
  const absl::Status status = CheckpointSaverHook::Create(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("CheckpointSaverHook: a period has neither steps and time"));
}

}  // namespace
}  // namespace lockstep::train
