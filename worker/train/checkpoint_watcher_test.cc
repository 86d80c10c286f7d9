#include "worker/train/checkpoint_watcher.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/simulated_clock.h"
#include "common/checkpoint/bundle_writer.h"
#include "common/checkpoint/checkpoint_state.h"
#include "common/io/memory_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class CheckpointWatcherTest : public ::testing::Test {
 protected:
  CheckpointWatcherTest() {
    EXPECT_TRUE(fs_.CreateDirectory("run").ok());
    options_.clock = &clock_;
  }

  void Save(int step) {
    const std::string prefix = absl::StrCat("run/model.ckpt-", step);
    auto writer = *BundleWriter::Create(&fs_, prefix);
    ASSERT_TRUE(writer->Finish().ok());
    ASSERT_TRUE(WriteCheckpointState(&fs_, "run", prefix, {}).ok());
  }

  MemoryFileSystem fs_;
  SimulatedClock clock_;
  CheckpointWatcherOptions options_;
};

TEST_F(CheckpointWatcherTest, ReturnsTheCheckpointThatIsThere) {
  Save(7);
  CheckpointWatcher watcher(&fs_, "run", options_);
  EXPECT_EQ(watcher.WaitForNewCheckpoint(""), "run/model.ckpt-7");
}

// EVAL-08.
TEST_F(CheckpointWatcherTest, ReturnsNothingAfterTheTimeout) {
  options_.timeout = absl::Seconds(0.5);
  CheckpointWatcher watcher(&fs_, "run", options_);
  // Gives up at once: the next look would be after a second.
  EXPECT_EQ(watcher.WaitForNewCheckpoint(""), absl::nullopt);
  Save(7);
  EXPECT_EQ(watcher.WaitForNewCheckpoint("run/model.ckpt-7"), absl::nullopt);
}

TEST_F(CheckpointWatcherTest, LooksAgainUntilTheTimeout) {
  options_.timeout = absl::Seconds(2.5);
  CheckpointWatcher watcher(&fs_, "run", options_);
  absl::optional<std::string> result = "";
  std::thread waiter([&] { result = watcher.WaitForNewCheckpoint(""); });
  for (int look = 0; look < 2; ++look) {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(1));
  }
  waiter.join();
  EXPECT_EQ(result, absl::nullopt);
}

TEST_F(CheckpointWatcherTest, WaitsForTheNextCheckpoint) {
  Save(7);
  CheckpointWatcher watcher(&fs_, "run", options_);
  EXPECT_EQ(watcher.Next(), "run/model.ckpt-7");
  absl::optional<std::string> second;
  std::thread waiter([&] { second = watcher.Next(); });
  clock_.AwaitWaiters(1);
  Save(8);
  Save(9);
  clock_.Advance(absl::Seconds(1));
  waiter.join();
  // The one between is passed over.
  EXPECT_EQ(second, "run/model.ckpt-9");
}

TEST_F(CheckpointWatcherTest, KeepsTheInterval) {
  options_.min_interval = absl::Seconds(60);
  Save(1);
  CheckpointWatcher watcher(&fs_, "run", options_);
  EXPECT_EQ(watcher.Next(), "run/model.ckpt-1");
  Save(2);
  clock_.Advance(absl::Seconds(20));
  absl::optional<std::string> second;
  std::thread waiter([&] { second = watcher.Next(); });
  clock_.AwaitWaiters(1);
  Save(3);
  clock_.Advance(absl::Seconds(40));
  waiter.join();
  EXPECT_EQ(second, "run/model.ckpt-3");
  // After a long evaluation there is nothing to wait for.
  Save(4);
  clock_.Advance(absl::Seconds(100));
  EXPECT_EQ(watcher.Next(), "run/model.ckpt-4");
}

// EVAL-09.
TEST_F(CheckpointWatcherTest, AsksWhetherToGoOnAfterATimeout) {
  int calls = 0;
  options_.timeout = absl::Seconds(0.1);
  options_.timed_out = [&] { return ++calls > 3; };
  CheckpointWatcher watcher(&fs_, "run", options_);
  EXPECT_EQ(watcher.Next(), absl::nullopt);
  EXPECT_EQ(calls, 4);
}

TEST_F(CheckpointWatcherTest, WithoutAQuestionTheFirstTimeoutEndsTheWatch) {
  options_.timeout = absl::Seconds(0.1);
  Save(5);
  CheckpointWatcher watcher(&fs_, "run", options_);
  std::vector<std::string> seen;
  while (const auto checkpoint = watcher.Next()) seen.push_back(*checkpoint);
  EXPECT_THAT(seen, ElementsAre("run/model.ckpt-5"));
}

TEST_F(CheckpointWatcherTest, StopWakesTheWaiter) {
  CheckpointWatcher watcher(&fs_, "run", options_);
  absl::optional<std::string> result = "";
  std::thread waiter([&] { result = watcher.Next(); });
  clock_.AwaitWaiters(1);
  watcher.Stop();
  waiter.join();
  EXPECT_EQ(result, absl::nullopt);
  Save(1);
  EXPECT_EQ(watcher.Next(), absl::nullopt);
}

}  // namespace
}  // namespace lockstep
