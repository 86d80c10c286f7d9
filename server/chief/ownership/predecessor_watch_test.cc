#include "lockstep/server/chief/ownership/predecessor_watch.h"

#include "gtest/gtest.h"
#include "lockstep/common/io/testing/faulty_file_system.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using State = PredecessorWatch::State;

class PredecessorWatchTest : public ::testing::Test {
 protected:
  PredecessorWatchTest() {
    EXPECT_TRUE(memory_.CreateDirectory("d").ok());
    chief_ = FencedFiles::Create(&memory_, "d", 3).value();
  }

  // Looks after `time` has passed.
  State LookAfter(absl::Duration time) {
    now_ += time;
    return watch_.Look(/*held=*/true, now_);
  }

  MemoryFileSystem memory_;
  FaultyFileSystem fs_{&memory_};
  std::unique_ptr<FencedFiles> chief_;
  PredecessorWatch watch_{&fs_, "d", absl::Seconds(5)};
  absl::Time now_ = absl::UnixEpoch();
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

TEST_F(PredecessorWatchTest, AChiefWithoutBeatsIsNeverSilent) {
  EXPECT_EQ(LookAfter(absl::Seconds(1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Hours(1)), State::kRuns);
  EXPECT_EQ(LookAfter(absl::Hours(1)), State::kRuns);
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
  EXPECT_EQ(watch_.Look(/*held=*/false, now_), State::kGone);
  EXPECT_EQ(LookAfter(absl::Seconds(9)), State::kRuns) << "another chief has come";
}

}  // namespace
}  // namespace lockstep
