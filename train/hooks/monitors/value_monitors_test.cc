#include "lockstep/train/hooks/monitors/value_monitors.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/hooks/monitors/monitor_hook_adapter.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FakeSession::Options Steps(int64_t total_steps) {
  FakeSession::Options options;
  options.total_steps = total_steps;
  return options;
}
// Runs a program with one monitor to its end. Returns the number of reads.
int64_t RunWith(Monitor* monitor, const FakeSession::Options& options) {
  const auto hook = *MonitorHookAdapter::Create({{monitor}});
  HookedRun run({hook.get()}, options);
  EXPECT_TRUE(run.RunToTheEnd().ok());
  EXPECT_TRUE(run.Close().ok());
  return run.base().reads();
}

class PrintTensorMonitorTest : public ::testing::Test {
 protected:
  PrintTensorMonitorTest() {
    options_.tensors = {"v", "loss", "global_step"};
    options_.log = [this](const std::string& line) { lines_.push_back(line); };
  }
  std::string Error() { return std::string(PrintTensorMonitor::Create(options_).status().message()); }

  PrintTensorOptions options_;
  std::vector<std::string> lines_;
};

TEST_F(PrintTensorMonitorTest, LogsTheFirstStepsAndThenEverySoMany) {
  options_.every_n_steps = 4;
  options_.first_n_steps = 2;
  const auto monitor = *PrintTensorMonitor::Create(options_);
  EXPECT_EQ(RunWith(monitor.get(), Steps(12)), 4);
  EXPECT_THAT(lines_, ElementsAre("Step 1: v = [1 2], loss = 1, global_step = 1",
                                  "Step 2: v = [2 4], loss = 0.5, global_step = 2",
                                  "Step 6: v = [6 12], loss = 0.166667, global_step = 6",
                                  "Step 10: v = [10 20], loss = 0.1, global_step = 10"));
}

TEST_F(PrintTensorMonitorTest, ShowsSoManyElements) {
  options_.tensors = {"v"};
  for (const int64_t summarize : {1, 0, -1}) {
    options_.summarize = summarize;
    const auto monitor = *PrintTensorMonitor::Create(options_);
    RunWith(monitor.get(), Steps(1));
  }
  EXPECT_THAT(lines_,
              ElementsAre("Step 1: v = [1 ... of shape [2]]", "Step 1: v = [... of shape [2]]", "Step 1: v = [1 2]"));
}

TEST_F(PrintTensorMonitorTest, ReadsNothingForWhatEveryRunHas) {
  options_.tensors = {"loss"};
  const auto monitor = *PrintTensorMonitor::Create(options_);
  EXPECT_EQ(RunWith(monitor.get(), Steps(3)), 0);
  EXPECT_THAT(lines_, ElementsAre("Step 1: loss = 1"));
}

TEST_F(PrintTensorMonitorTest, NamesTheOptionThatIsWrong) {
  options_.summarize = -2;
  EXPECT_THAT(Error(), HasSubstr("summarize is -2"));
  options_.every_n_steps = -1;
  EXPECT_THAT(Error(), HasSubstr("every_n_steps is -1"));
  options_.tensors.clear();
  EXPECT_THAT(Error(), HasSubstr("tensors are empty"));
}

TEST(ValueDumpMonitorTest, KeepsAllValuesOfEachStep) {
  ValueDumpMonitor dump({"w", "v"});
  RunWith(&dump, Steps(3));
  std::vector<int64_t> steps;
  for (const auto& [step, values] : dump.values()) {
    steps.push_back(step);
    EXPECT_EQ(values.at("w").flat<float>()[0], static_cast<float>(step));
    EXPECT_EQ(values.at("v").flat<float>()[1], static_cast<float>(2 * step));
  }
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
}

TEST(ValueDumpMonitorTest, KeepsThoseOfEverySoManyStepsAndOfTheLast) {
  ValueDumpMonitor dump({"w"}, /*every_n_steps=*/4);
  RunWith(&dump, Steps(7));
  std::vector<int64_t> steps;
  for (const auto& [step, values] : dump.values()) steps.push_back(step);
  EXPECT_THAT(steps, ElementsAre(1, 5, 7));
}

TEST(ValueDumpMonitorTest, SaysWhereTwoRunsDiffer) {
  ValueDumpMonitor one({"w", "v"}), same({"w", "v"}), other({"w", "v"});
  RunWith(&one, Steps(3));
  RunWith(&same, Steps(3));
  const auto hook = *MonitorHookAdapter::Create({{&other}});
  HookedRun run({hook.get()}, Steps(3));
  ASSERT_TRUE(run.Run(2).ok());
  // After the Assign, "w" and "v" no longer have the step's values.
  ASSERT_TRUE(run.base().Assign({{"w", Tensor::FromValues<float>({}, {3.0001f})}}).ok());
  ASSERT_TRUE(run.Run(1).ok());
  const auto compare = [&](const ValueDumpMonitor& with, int64_t step, double tolerance = 1e-6) {
    auto comparison = one.Compare(with, step, tolerance);
    EXPECT_TRUE(comparison.ok()) << comparison.status();
    return *std::move(comparison);
  };
  EXPECT_THAT(compare(same, 3).matched, ElementsAre("v", "w"));
  EXPECT_THAT(compare(same, 3).non_matched, IsEmpty());
  EXPECT_THAT(compare(other, 2).non_matched, IsEmpty());
  EXPECT_THAT(compare(other, 3).non_matched, ElementsAre("v", "w"));
  EXPECT_THAT(compare(other, 3, /*tolerance=*/0.001).non_matched, IsEmpty());
}

TEST(ValueDumpMonitorTest, SaysWhatIsMissing) {
  ValueDumpMonitor one({"w", "v"}), other({"w"});
  RunWith(&one, Steps(3));
  RunWith(&other, Steps(2));
  EXPECT_TRUE(absl::IsNotFound(one.Compare(other, 4).status()));
  EXPECT_EQ(one.Compare(other, 2).status(), absl::InvalidArgumentError("the other run has no v of step 2"));
  EXPECT_EQ(one.Compare(other, 3).status(), absl::InvalidArgumentError("the other run has no v of step 3"));
  EXPECT_TRUE(other.Compare(one, 2).ok()) << "what the first has, the other has";
}

}  // namespace
}  // namespace lockstep::train
