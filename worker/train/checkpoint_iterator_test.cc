#include "worker/train/checkpoint_iterator.h"

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

class CheckpointIteratorTest : public ::testing::Test {
 protected:
  CheckpointIteratorTest() {
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
  CheckpointIteratorOptions options_;
};

TEST_F(CheckpointIteratorTest, ReturnsTheCheckpointThatIsThere) {
  Save(7);
  CheckpointIterator iterator(&fs_, "run", options_);
  EXPECT_EQ(iterator.WaitForNewCheckpoint(""), "run/model.ckpt-7");
}

// EVAL-08.
TEST_F(CheckpointIteratorTest, ReturnsNothingAfterTheTimeout) {
  options_.timeout = absl::Seconds(0.5);
  CheckpointIterator iterator(&fs_, "run", options_);
  // Gives up at once: the next look would be after a second.
  EXPECT_EQ(iterator.WaitForNewCheckpoint(""), absl::nullopt);
  Save(7);
  EXPECT_EQ(iterator.WaitForNewCheckpoint("run/model.ckpt-7"), absl::nullopt);
}

TEST_F(CheckpointIteratorTest, LooksAgainUntilTheTimeout) {
  options_.timeout = absl::Seconds(2.5);
  CheckpointIterator iterator(&fs_, "run", options_);
  absl::optional<std::string> result = "";
  std::thread waiter([&] { result = iterator.WaitForNewCheckpoint(""); });
  for (int look = 0; look < 2; ++look) {
    clock_.AwaitWaiters(1);
    clock_.Advance(absl::Seconds(1));
  }
  waiter.join();
  EXPECT_EQ(result, absl::nullopt);
}

TEST_F(CheckpointIteratorTest, WaitsForTheNextCheckpoint) {
  Save(7);
  CheckpointIterator iterator(&fs_, "run", options_);
  EXPECT_EQ(iterator.Next(), "run/model.ckpt-7");
  absl::optional<std::string> second;
  std::thread waiter([&] { second = iterator.Next(); });
  clock_.AwaitWaiters(1);
  Save(8);
  Save(9);
  clock_.Advance(absl::Seconds(1));
  waiter.join();
  // The one between is passed over.
  EXPECT_EQ(second, "run/model.ckpt-9");
}

TEST_F(CheckpointIteratorTest, KeepsTheInterval) {
  options_.min_interval = absl::Seconds(60);
  Save(1);
  CheckpointIterator iterator(&fs_, "run", options_);
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
  // After a long evaluation there is nothing to wait for.
  Save(4);
  clock_.Advance(absl::Seconds(100));
  EXPECT_EQ(iterator.Next(), "run/model.ckpt-4");
}

// EVAL-09.
TEST_F(CheckpointIteratorTest, AsksWhetherToGoOnAfterATimeout) {
  int calls = 0;
  options_.timeout = absl::Seconds(0.1);
  options_.timed_out = [&] { return ++calls > 3; };
  CheckpointIterator iterator(&fs_, "run", options_);
  EXPECT_EQ(iterator.Next(), absl::nullopt);
  EXPECT_EQ(calls, 4);
}

TEST_F(CheckpointIteratorTest, WithoutAQuestionTheFirstTimeoutEndsTheWatch) {
  options_.timeout = absl::Seconds(0.1);
  Save(5);
  CheckpointIterator iterator(&fs_, "run", options_);
  std::vector<std::string> seen;
  while (const auto checkpoint = iterator.Next()) seen.push_back(*checkpoint);
  EXPECT_THAT(seen, ElementsAre("run/model.ckpt-5"));
}

TEST_F(CheckpointIteratorTest, StopWakesTheWaiter) {
  CheckpointIterator iterator(&fs_, "run", options_);
  absl::optional<std::string> result = "";
  std::thread waiter([&] { result = iterator.Next(); });
  clock_.AwaitWaiters(1);
  iterator.Stop();
  waiter.join();
  EXPECT_EQ(result, absl::nullopt);
  Save(1);
  EXPECT_EQ(iterator.Next(), absl::nullopt);
}

}  // namespace
}  // namespace lockstep
