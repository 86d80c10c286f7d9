#include "lockstep/server/chief/ownership/predecessor_watch.h"

#include <utility>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using State = PredecessorWatch::State;

// A file system that delays its next operation by `delay`.
class SlowDisk : public ForwardingFileSystem {
 public:
  SlowDisk(FileSystem* base, SimulatedClock* clock) : ForwardingFileSystem(base), clock_(clock) {}
  absl::Duration delay;

 private:
  absl::Status Before(Operation, const std::string&) override {
    clock_->Advance(std::exchange(delay, absl::ZeroDuration()));
    return absl::OkStatus();
  }

  SimulatedClock* const clock_;
};

class PredecessorWatchTest : public ::testing::Test {
 protected:
  PredecessorWatchTest() {
    EXPECT_TRUE(memory_.CreateDirectory("d").ok());
    chief_ = FencedFiles::Create(&memory_, "d", 3).value();
  }

  // Advances the clock by `time` and calls Look.
  State LookAfter(absl::Duration time) {
    clock_.Advance(time);
    return watch_.Look([] { return true; });
  }

  SimulatedClock clock_;
  MemoryFileSystem memory_;
  SlowDisk slow_{&memory_, &clock_};
  FaultyFileSystem fs_{&slow_};
  std::unique_ptr<FencedFiles> chief_;
  PredecessorWatch watch_{&fs_, &clock_, "d", absl::Seconds(5)};
};

TEST_F(PredecessorWatchTest, AChiefIsSilentAfterTheLimit) {
  ASSERT_TRUE(chief_->Beat().ok());
  EXPECT_EQ(LookAfter(absl::Seconds(1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(4.9)), State::kRuns);
  ASSERT_TRUE(chief_->Beat().ok());
  EXPECT_EQ(LookAfter(absl::Seconds(4.9)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(4.9)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(0.1)), State::kSilent);
  EXPECT_EQ(watch_.generation(), 3);
  ASSERT_TRUE(chief_->Beat().ok());
  EXPECT_EQ(LookAfter(absl::Seconds(9)), State::kRuns) << "it continues";
}

TEST_F(PredecessorWatchTest, ANewChiefIsNotSilent) {
  ASSERT_TRUE(chief_->Beat().ok());
  EXPECT_EQ(LookAfter(absl::Seconds(1)), State::kRuns);
  const auto next = FencedFiles::Create(&memory_, "d", 1).value();
  ASSERT_TRUE(next->Beat().ok());
  EXPECT_EQ(LookAfter(absl::Seconds(9)), State::kRuns) << "its first beat has the same text";
  EXPECT_EQ(LookAfter(absl::Seconds(5)), State::kSilent);
  EXPECT_EQ(watch_.generation(), 4);
}

// Another standby was killed before it replaced the chief.
TEST_F(PredecessorWatchTest, AFolderWithoutOwnerHidesNoChief) {
  ASSERT_TRUE(chief_->Beat().ok());
  ASSERT_TRUE(memory_.CreateDirectory("d/generation.4").ok());
  EXPECT_EQ(LookAfter(absl::Seconds(1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(5)), State::kSilent);
  EXPECT_EQ(watch_.generation(), 3);
}

TEST_F(PredecessorWatchTest, AChiefWithoutBeatsIsNeverSilent) {
  EXPECT_EQ(LookAfter(absl::Seconds(1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Hours(1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Hours(1)), State::kRuns);
}

// The disk hangs for both the standby and the chief.
TEST_F(PredecessorWatchTest, ASlowReadIsNoSilence) {
  ASSERT_TRUE(chief_->Beat().ok());
  slow_.delay = absl::Seconds(9);
  EXPECT_EQ(LookAfter(absl::Seconds(1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(0.1)), State::kRuns);
  slow_.delay = absl::Seconds(9);
  EXPECT_EQ(LookAfter(absl::Seconds(0.1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(0.1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(5)), State::kSilent);
}

TEST_F(PredecessorWatchTest, AnErrorOfTheDiskIsNoSilence) {
  ASSERT_TRUE(chief_->Beat().ok());
  EXPECT_EQ(LookAfter(absl::Seconds(1)), State::kRuns);
  fs_.FailMatching(FaultyFileSystem::Operation::kOpen, "alive", absl::InternalError("Input/output error"));
  EXPECT_EQ(LookAfter(absl::Seconds(9)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(9)), State::kRuns);
  fs_.Heal();
  EXPECT_EQ(LookAfter(absl::Seconds(9)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Seconds(5)), State::kSilent);
}

TEST_F(PredecessorWatchTest, AChiefWithoutItsLockIsGone) {
  ASSERT_TRUE(chief_->Beat().ok());
  EXPECT_EQ(LookAfter(absl::Seconds(1)), State::kRuns);
  EXPECT_EQ(watch_.Look([] { return false; }), State::kGone);
  EXPECT_EQ(LookAfter(absl::Seconds(9)), State::kRuns) << "another chief has come";
}

}  // namespace
}  // namespace lockstep
