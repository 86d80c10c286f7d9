#include "lockstep/train/hooks/monitors/monitors.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/train/hooks/monitors/monitor_hook_adapter.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// A program with one monitor, started once.
class MonitoredRun {
 public:
  explicit MonitoredRun(Monitor* monitor, FakeSession::Options options = {})
      : hook_(*MonitorHookAdapter::Create({{monitor}})), run_({hook_.get()}, std::move(options)) {}
  HookedRun* operator->() { return &run_; }

 private:
  const std::unique_ptr<MonitorHookAdapter> hook_;
  HookedRun run_;
};

FakeSession::Options At(int64_t step) {
  FakeSession::Options options;
  options.step = step;
  return options;
}

TEST(StopAtStepMonitorTest, CountsTheFirstStep) {
  StopAtStepOptions options;
  options.num_steps = 3;
  const auto monitor = *StopAtStepMonitor::Create(options);
  MonitoredRun run(monitor.get(), At(5));
  ASSERT_TRUE(run->RunToTheEnd().ok());
  EXPECT_EQ(run->base().newest(), 8);
}

TEST(StopAtStepMonitorTest, ARestartOfTheChiefDoesNotExtendIt) {
  StopAtStepOptions options;
  options.num_steps = 10;
  for (int killed_at = 0; killed_at < 10; ++killed_at) {
    const auto first = *StopAtStepMonitor::Create(options);
    MonitoredRun run(first.get());
    ASSERT_TRUE(run->Run(killed_at).ok());
    const auto second = *StopAtStepMonitor::Create(options);
    MonitoredRun next(second.get(), run->base().NextLife());
    ASSERT_TRUE(next->status().ok()) << next->status();
    ASSERT_TRUE(next->RunToTheEnd().ok());
    EXPECT_EQ(next->base().newest(), 10) << killed_at;
  }
}

TEST(StopAtStepMonitorTest, WrongOptionsAreNamed) {
  EXPECT_THAT(StopAtStepMonitor::Create({}).status().message(), HasSubstr("StopAtStepMonitor was given neither"));
}

TEST(CheckpointSaverMonitorTest, SavesTheFirstStepThenWithThePeriodAndAtTheEnd) {
  const auto monitor = *CheckpointSaverMonitor::Create(Period::Steps(4));
  FakeSession::Options options;
  options.total_steps = 11;
  MonitoredRun run(monitor.get(), options);
  ASSERT_TRUE(run->RunToTheEnd().ok());
  ASSERT_TRUE(run->Close().ok());
  EXPECT_THAT(run->base().saved_steps(), ElementsAre(1, 5, 9, 11));
}

TEST(StepCounterMonitorTest, MeasuresBetweenActiveSteps) {
  SimulatedClock clock;
  StepCounterMonitor monitor(10, &clock);
  MonitoredRun run(&monitor);
  for (int i = 0; i < 25; ++i) {
    ASSERT_TRUE(run->Run().ok());
    clock.Advance(absl::Seconds(0.5));
  }
  ASSERT_EQ(run->base().scalars().size(), 2);
  EXPECT_EQ(run->base().scalars()[1].step, 21);
  EXPECT_FLOAT_EQ(run->base().scalars()[1].value, 2);
}

// MON-14.
TEST(SummarySaverMonitorTest, SavesAtTheActiveSteps) {
  float counter = 0;
  const auto monitor = *SummarySaverMonitor::Create(
      [&](Session&, int64_t step) -> absl::StatusOr<v1::Summary> {
        SummaryBuilder builder;
        builder.AddScalar("counter", ++counter);
        return builder.Build(step).summary();
      },
      8);
  FakeSession session;
  ASSERT_TRUE(monitor->Begin(29).ok());
  for (int64_t step = 0; step < 30; ++step) {
    ASSERT_TRUE(monitor->StepBegin(step).ok());
    ASSERT_TRUE(monitor->StepEnd(step, RunValues()).ok());
    ASSERT_TRUE(monitor->PostStep(step, session).ok());
  }
  ASSERT_TRUE(monitor->End(session).ok());
  std::vector<std::pair<int64_t, float>> scalars;
  for (const auto& scalar : session.scalars()) scalars.emplace_back(scalar.step, scalar.value);
  EXPECT_THAT(scalars, ElementsAre(Pair(0, 1), Pair(1, 2), Pair(9, 3), Pair(17, 4), Pair(25, 5), Pair(29, 6)));
}

TEST(NanLossMonitorTest, FailsOrStops) {
  FakeSession::Options options;
  options.loss = [](int64_t step) { return step == 3 ? std::nan("") : 1.0; };
  NanLossMonitor failing(1);
  MonitoredRun failed(&failing, options);
  EXPECT_EQ(failed->RunToTheEnd(), absl::InvalidArgumentError("hook MonitorHookAdapter: monitor NanLoss: the loss is "
                                                              "NaN at global step 3"));
  NanLossMonitor stopping(1, false);
  MonitoredRun stopped(&stopping, options);
  EXPECT_TRUE(stopped->RunToTheEnd().ok());
  EXPECT_EQ(stopped->base().newest(), 3);
}

TEST(CaptureVariableMonitorTest, KeepsTheValuesOfActiveSteps) {
  CaptureVariableMonitor monitor("w", 4);
  MonitoredRun run(&monitor);
  ASSERT_TRUE(run->Run(10).ok());
  std::vector<std::pair<int64_t, float>> values;
  for (const auto& [step, value] : monitor.values()) values.emplace_back(step, value.flat<float>()[0]);
  EXPECT_THAT(values, ElementsAre(Pair(1, 1), Pair(5, 5), Pair(9, 9)));
  EXPECT_EQ(run->base().reads(), 3);
}

TEST(ExportMonitorTest, WritesValuesAndKeepsTheNewest) {
  MemoryFileSystem fs;
  SimulatedClock clock;
  ExportOptions options;
  options.directory = "/export";
  options.variables = {"w"};
  options.every_n_steps = 4;
  options.exports_to_keep = 2;
  options.fs = &fs;
  options.clock = &clock;
  const auto monitor = *ExportMonitor::Create(options);
  FakeSession::Options session;
  session.total_steps = 7;
  MonitoredRun run(monitor.get(), session);
  ASSERT_TRUE(run->RunToTheEnd().ok());
  ASSERT_TRUE(run->Close().ok());
  EXPECT_FALSE(*CheckpointExists("/export/export-1", &fs));
  EXPECT_TRUE(*CheckpointExists("/export/export-5", &fs));
  SaverOptions saver_options;
  saver_options.fs = &fs;
  const auto values = (*Saver::Create(saver_options))->Restore("/export/export-7");
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].name, "w");
  EXPECT_EQ((*values)[0].value.flat<float>()[0], 7);
  EXPECT_THAT(ExportMonitor::Create({}).status().message(), HasSubstr("directory is empty"));
}

}  // namespace
}  // namespace lockstep::train
