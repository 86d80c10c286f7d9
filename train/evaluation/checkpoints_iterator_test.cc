#include "lockstep/train/evaluation/checkpoints_iterator.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;

class CheckpointsIteratorTest : public ::testing::Test {
 protected:
  CheckpointsIteratorTest() {
    EXPECT_TRUE(fs_.CreateDirectory("run").ok());
    options_.wait.clock = &clock_;
    options_.wait.fs = &fs_;
  }

  void Save(int step) {
    const std::string prefix = absl::StrCat("run/model.ckpt-", step);
    auto writer = *BundleWriter::Create(&fs_, prefix);
    ASSERT_TRUE(writer->Finish().ok());
    ASSERT_TRUE(WriteCheckpointState(&fs_, "run", prefix, {}).ok());
  }

  MemoryFileSystem fs_;
  SimulatedClock clock_;
  CheckpointsIteratorOptions options_;
};

TEST_F(CheckpointsIteratorTest, ReturnsTheCheckpointThatIsThere) {
  Save(7);
  EXPECT_EQ(WaitForNewCheckpoint("run", "", options_.wait), "run/model.ckpt-7");
}

// EVAL-08.
TEST_F(CheckpointsIteratorTest, ReturnsNothingAfterTheTimeout) {
  options_.wait.timeout = absl::Seconds(0.5);
  // Gives up immediately, because the next check would come a second later, after the timeout.
  EXPECT_EQ(WaitForNewCheckpoint("run", "", options_.wait), absl::nullopt);
  Save(7);
  EXPECT_EQ(WaitForNewCheckpoint("run", "run/model.ckpt-7", options_.wait), absl::nullopt);
}

TEST_F(CheckpointsIteratorTest, LooksAgainUntilTheTimeout) {
  options_.wait.timeout = absl::Seconds(2.5);
  absl::optional<std::string> result = "";
  std::thread waiter([&] { result = WaitForNewCheckpoint("run", "", options_.wait); });
  for (int look = 0; look < 2; ++look) {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(1));
  }
  waiter.join();
  EXPECT_EQ(result, absl::nullopt);
}

TEST_F(CheckpointsIteratorTest, WaitsForTheNextCheckpoint) {
  Save(7);
  CheckpointsIterator iterator("run", options_);
  EXPECT_EQ(iterator.Next(), "run/model.ckpt-7");
  absl::optional<std::string> second;
  std::thread waiter([&] { second = iterator.Next(); });
  clock_.AwaitWaiters(1);
  Save(8);
  Save(9);
  clock_.Advance(absl::Seconds(1));
  waiter.join();
  // The checkpoint in between is skipped.
  EXPECT_EQ(second, "run/model.ckpt-9");
}

TEST_F(CheckpointsIteratorTest, KeepsTheInterval) {
  options_.min_interval = absl::Seconds(60);
  Save(1);
  CheckpointsIterator iterator("run", options_);
  EXPECT_EQ(iterator.Next(), "run/model.ckpt-1");
  Save(2);
  clock_.Advance(absl::Seconds(20));
  absl::optional<std::string> second;
  std::thread waiter([&] { second = iterator.Next(); });
  clock_.AwaitWaiters(1);
  Save(3);
  clock_.Advance(absl::Seconds(40));
  waiter.join();
  EXPECT_EQ(second, "run/model.ckpt-3");
  // After a long evaluation, min_interval has already passed, so Next does not wait.
  Save(4);
  clock_.Advance(absl::Seconds(100));
  EXPECT_EQ(iterator.Next(), "run/model.ckpt-4");
}

// EVAL-09.
TEST_F(CheckpointsIteratorTest, AsksWhetherToGoOnAfterATimeout) {
  int calls = 0;
  options_.wait.timeout = absl::Seconds(0.1);
  options_.timeout_fn = [&] { return ++calls > 3; };
  CheckpointsIterator iterator("run", options_);
  EXPECT_EQ(iterator.Next(), absl::nullopt);
  EXPECT_EQ(calls, 4);
}

TEST_F(CheckpointsIteratorTest, WithoutAQuestionTheFirstTimeoutEndsTheWatch) {
  options_.wait.timeout = absl::Seconds(0.1);
  Save(5);
  CheckpointsIterator iterator("run", options_);
  std::vector<std::string> seen;
  while (const auto checkpoint = iterator.Next()) seen.push_back(*checkpoint);
  EXPECT_THAT(seen, ElementsAre("run/model.ckpt-5"));
}

TEST_F(CheckpointsIteratorTest, AStopWakesTheWaiter) {
  StopSignal stop;
  options_.wait.stop = &stop;
  CheckpointsIterator iterator("run", options_);
  absl::optional<std::string> result = "";
  std::thread waiter([&] { result = iterator.Next(); });
  clock_.AwaitWaiters(1);
  stop.Request();
  waiter.join();
  EXPECT_EQ(result, absl::nullopt);
  Save(1);
  EXPECT_EQ(iterator.Next(), absl::nullopt);
}

}  // namespace
}  // namespace lockstep::train
