#include "lockstep/server/chief/checkpoint/save_queue.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

class SaveQueueTest : public ::testing::Test {
 protected:
  // Starts to write `step`.
  void Write(int64_t step) {
    ASSERT_TRUE(queue_.Offer(step, At(step)));
    ASSERT_EQ(queue_.Take(), step);
  }

  SaveQueue queue_;
};

TEST_F(SaveQueueTest, AnIdleQueueHasNothingToTakeOrToEnd) {
  EXPECT_FALSE(queue_.busy());
  EXPECT_EQ(queue_.Take(), absl::nullopt);
  EXPECT_FALSE(queue_.PutBack());
  queue_.OnWritten(true);
  EXPECT_FALSE(queue_.busy());
  EXPECT_TRUE(queue_.Offer(0, At(0)));
}

TEST_F(SaveQueueTest, ANewerSnapshotTakesThePlaceOfTheOneThatWaits) {
  EXPECT_TRUE(queue_.Offer(1, At(1)));
  EXPECT_TRUE(queue_.Offer(2, At(2)));
  EXPECT_EQ(queue_.waiting(), 2);
  EXPECT_FALSE(queue_.Offer(1, At(3)));
  EXPECT_FALSE(queue_.OfferUrgent(1));
  EXPECT_EQ(queue_.waiting(), 2);
}

TEST_F(SaveQueueTest, WritesAStepThatIsOfferedAgain) {
  Write(5);
  queue_.OfferAgain(5);
  EXPECT_TRUE(queue_.urgent());
  queue_.OnWritten(true);
  EXPECT_EQ(queue_.waiting(), 5) << "the written state is outdated";
  EXPECT_FALSE(queue_.Offer(5, At(6))) << "a late snapshot, taken before";
  EXPECT_FALSE(queue_.OfferUrgent(5));
  EXPECT_EQ(queue_.Take(), 5);
  EXPECT_FALSE(queue_.OfferUrgent(5));
  queue_.OnWritten(true);
  EXPECT_FALSE(queue_.busy());
  EXPECT_FALSE(queue_.Offer(5, At(7)));

  queue_.OfferAgain(5);
  EXPECT_TRUE(queue_.Offer(6, At(8))) << "a later step covers it";
  EXPECT_EQ(queue_.Take(), 6);
  queue_.OnWritten(true);
  EXPECT_FALSE(queue_.busy());
}

TEST_F(SaveQueueTest, OneThatIsOfferedAgainMayBeTriedAgain) {
  queue_.OfferAgain(5);
  EXPECT_EQ(queue_.Take(), 5);
  queue_.OnWritten(false);
  EXPECT_FALSE(queue_.busy());
  EXPECT_TRUE(queue_.OfferUrgent(5));
}

TEST_F(SaveQueueTest, OneIsWrittenAtATime) {
  Write(1);
  EXPECT_TRUE(queue_.Offer(2, At(2)));
  EXPECT_FALSE(queue_.HasWork(/*paced=*/true));
  EXPECT_EQ(queue_.Take(), absl::nullopt);
  queue_.OnWritten(true);
  EXPECT_TRUE(queue_.HasWork(/*paced=*/true));
  EXPECT_EQ(queue_.Take(), 2);
}

TEST_F(SaveQueueTest, ASavedStepIsNotWrittenAgain) {
  Write(1);
  queue_.OnWritten(true);
  EXPECT_FALSE(queue_.Offer(1, At(2)));
  EXPECT_FALSE(queue_.OfferUrgent(1));
  EXPECT_FALSE(queue_.busy());
}

TEST_F(SaveQueueTest, AStepThatCouldNotBeSavedMayComeAgain) {
  Write(1);
  queue_.OnWritten(false);
  EXPECT_FALSE(queue_.busy());
  EXPECT_TRUE(queue_.Offer(1, At(2)));
}

TEST_F(SaveQueueTest, RewritesTheWrittenStepOnlyIfUrgent) {
  Write(1);
  EXPECT_FALSE(queue_.Offer(1, At(2)));
  EXPECT_FALSE(queue_.waiting().has_value());
  EXPECT_TRUE(queue_.OfferUrgent(1));
  EXPECT_TRUE(queue_.urgent());
  EXPECT_EQ(queue_.waiting(), 1);
}

TEST_F(SaveQueueTest, WhatIsSavedMeanwhileWaitsNoMore) {
  Write(1);
  ASSERT_TRUE(queue_.OfferUrgent(1));
  queue_.OnWritten(true);
  EXPECT_FALSE(queue_.busy());
  EXPECT_FALSE(queue_.urgent());
}

TEST_F(SaveQueueTest, WhatCouldNotBeSavedStillWaits) {
  Write(1);
  ASSERT_TRUE(queue_.OfferUrgent(1));
  queue_.OnWritten(false);
  EXPECT_EQ(queue_.waiting(), 1);
  EXPECT_TRUE(queue_.urgent());
}

TEST_F(SaveQueueTest, UrgencyDecidesWhoWritesAndEndsWithTheWork) {
  ASSERT_TRUE(queue_.Offer(1, At(1)));
  EXPECT_TRUE(queue_.HasWork(/*paced=*/true));
  EXPECT_FALSE(queue_.HasWork(/*paced=*/false));
  queue_.MakeUrgent();
  EXPECT_FALSE(queue_.HasWork(/*paced=*/true));
  EXPECT_TRUE(queue_.HasWork(/*paced=*/false));
  ASSERT_EQ(queue_.Take(), 1);
  queue_.OnWritten(true);
  EXPECT_FALSE(queue_.urgent());
}

TEST_F(SaveQueueTest, WithoutWorkNothingIsUrgent) {
  queue_.MakeUrgent();
  EXPECT_FALSE(queue_.urgent());
}

TEST_F(SaveQueueTest, WhatIsPutBackWaitsAgain) {
  Write(1);
  EXPECT_TRUE(queue_.PutBack());
  EXPECT_EQ(queue_.Take(), 1);
}

TEST_F(SaveQueueTest, WhatIsPutBackYieldsToANewerOne) {
  Write(1);
  ASSERT_TRUE(queue_.Offer(2, At(2)));
  EXPECT_FALSE(queue_.PutBack());
  EXPECT_EQ(queue_.Take(), 2);
}

TEST_F(SaveQueueTest, MeasuresTheTimeBetweenOffersThatAreNotUrgent) {
  EXPECT_EQ(queue_.interval(), absl::InfiniteDuration());
  queue_.Offer(1, At(1));
  EXPECT_EQ(queue_.interval(), absl::InfiniteDuration());
  queue_.OfferUrgent(2);
  queue_.Offer(3, At(11));
  EXPECT_EQ(queue_.interval(), absl::Seconds(10));
}

}  // namespace
}  // namespace lockstep
