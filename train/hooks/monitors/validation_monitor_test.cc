#include "lockstep/train/hooks/monitors/validation_monitor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ValidationMonitorTest : public ::testing::Test {
 protected:
  // Returns options that evaluate the values of a step to the loss that `losses_` lists for it.
  ValidationOptions Options(int64_t every_n_steps) {
    ValidationOptions options;
    options.evaluate = [this](const ReadResult& values) -> absl::StatusOr<std::map<std::string, double>> {
      evaluated_.push_back(values.global_step);
      return std::map<std::string, double>{{"loss", losses_.at(values.global_step)}, {"accuracy", 0.5}};
    };
    options.every_n_steps = every_n_steps;
    options.fs = &fs_;
    options.clock = &clock_;
    return options;
  }

  MemoryFileSystem fs_;
  SimulatedClock clock_;
  std::map<int64_t, double> losses_ = {{1, 42}, {2, 40}, {3, 44}, {4, 43}, {5, 39}, {6, 38}};
  std::vector<int64_t> evaluated_;
};

// MON-11, but with values instead of checkpoints.
TEST_F(ValidationMonitorTest, StopsWhenTheMetricWasBestTooLongAgo) {
  auto options = Options(1);
  options.early_stopping_rounds = 2;
  const auto monitor = *ValidationMonitor::Create(options);
  HookedRun run({monitor.get()});
  ASSERT_TRUE(run.RunToTheEnd().ok());
  EXPECT_THAT(evaluated_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(run.base().newest(), 4);
  EXPECT_EQ(monitor->best().value(), 40);
  EXPECT_EQ(monitor->best().step(), 2);
  EXPECT_THAT(run.base().stop_reason(), HasSubstr("loss was best at global step 2: 40, now 43"));
}

TEST_F(ValidationMonitorTest, EvaluatesAtGatedSteps) {
  const auto monitor = *ValidationMonitor::Create(Options(3));
  HookedRun run({monitor.get()});
  ASSERT_TRUE(run.Run(6).ok());
  EXPECT_THAT(evaluated_, ElementsAre(3, 6));
  ASSERT_EQ(run.base().scalars().size(), 4);
  EXPECT_EQ(run.base().scalars()[0].tag, "validation/accuracy");
  EXPECT_EQ(run.base().scalars()[3].tag, "validation/loss");
  EXPECT_EQ(run.base().scalars()[3].value, 38);
  EXPECT_EQ(run.base().scalars()[3].step, 6);
}

TEST_F(ValidationMonitorTest, KeepsTheBestCheckpoint) {
  auto options = Options(1);
  options.best_checkpoint_directory = "/best";
  const auto monitor = *ValidationMonitor::Create(options);
  HookedRun run({monitor.get()});
  ASSERT_TRUE(run.Run(4).ok());
  EXPECT_EQ(monitor->best_checkpoint(), "/best/best-2");
  EXPECT_TRUE(*CheckpointExists("/best/best-2", &fs_));
  EXPECT_FALSE(*CheckpointExists("/best/best-1", &fs_));
  SaverOptions saver_options;
  saver_options.fs = &fs_;
  const auto values = (*Saver::Create(saver_options))->Restore("/best/best-2");
  ASSERT_TRUE(values.ok()) << values.status();
  for (const NamedTensor& value : *values) {
    if (value.name != "w") continue;
    EXPECT_EQ(value.value.flat<float>()[0], 2);
  }
}

TEST_F(ValidationMonitorTest, ARestartOfTheChiefChangesNothing) {
  for (int killed_at = 1; killed_at < 4; ++killed_at) {
    auto options = Options(1);
    options.early_stopping_rounds = 2;
    options.best_checkpoint_directory = absl::StrCat("/best-", killed_at);
    const auto first = *ValidationMonitor::Create(options);
    HookedRun run({first.get()});
    ASSERT_TRUE(run.Run(killed_at).ok());
    const auto second = *ValidationMonitor::Create(options);
    HookedRun next({second.get()}, run.base().NextLife());
    ASSERT_TRUE(next.RunToTheEnd().ok());
    EXPECT_EQ(next.base().newest(), 4);
    EXPECT_EQ(second->best_checkpoint(), absl::StrCat("/best-", killed_at, "/best-2"));
    EXPECT_TRUE(*CheckpointExists(second->best_checkpoint(), &fs_));
    EXPECT_FALSE(*CheckpointExists(absl::StrCat("/best-", killed_at, "/best-1"), &fs_));
  }
}

TEST_F(ValidationMonitorTest, AMissingMetricIsNamed) {
  auto options = Options(1);
  options.early_stopping_metric = "auc";
  const auto monitor = *ValidationMonitor::Create(options);
  HookedRun run({monitor.get()});
  EXPECT_EQ(run.Run(),
            absl::InvalidArgumentError("hook ValidationMonitor: evaluate returned no auc but accuracy, loss"));
}

// MON-13.
TEST_F(ValidationMonitorTest, WrongOptionsAreNamed) {
  const auto message = [](const ValidationOptions& options) {
    const absl::Status status = ValidationMonitor::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message(ValidationOptions()), HasSubstr("has no evaluate"));
  EXPECT_THAT(message(Options(0)), HasSubstr("every_n_steps is 0"));
  auto options = Options(1);
  options.early_stopping_rounds = 0;
  EXPECT_THAT(message(options), HasSubstr("early_stopping_rounds is 0"));
}

}  // namespace
}  // namespace lockstep::train
