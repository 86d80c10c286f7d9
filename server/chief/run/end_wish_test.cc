#include "lockstep/server/chief/run/end_wish.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

class EndWishTest : public ::testing::Test {
 protected:
  EndWish wish_{7};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(EndWishTest, IsNoneAtFirst) {
  EXPECT_FALSE(wish_.wanted());
  EXPECT_EQ(wish_.due(), absl::InfiniteFuture());
}

TEST_F(EndWishTest, IsDueAtOnceAndGoneWhenItIsCarriedOut) {
  wish_.Want("enough");
  EXPECT_LE(wish_.due(), now_);
  wish_.Want("another reason");
  EXPECT_EQ(wish_.reason(), "enough") << "the first counts";
  EXPECT_FALSE(wish_.OnTried(absl::OkStatus(), now_));
  EXPECT_FALSE(wish_.wanted());
}

TEST_F(EndWishTest, IsTriedAgainAfterGrowingDelaysWhereTheErrorMayPass) {
  wish_.Want("enough");
  absl::Duration last;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(wish_.OnTried(absl::ResourceExhaustedError("no space left on device"), now_));
    EXPECT_EQ(wish_.reason(), "enough");
    const absl::Duration delay = wish_.due() - now_;
    EXPECT_GT(delay, absl::ZeroDuration());
    EXPECT_LE(delay, absl::Seconds(2));
    last = delay;
    now_ = wish_.due();
  }
  EXPECT_GE(last, absl::Seconds(1)) << "they have grown";
  EXPECT_FALSE(wish_.OnTried(absl::OkStatus(), now_));
  EXPECT_EQ(wish_.due(), absl::InfiniteFuture());
}

TEST_F(EndWishTest, IsGivenUpAtAnyOtherError) {
  for (const absl::Status& error :
       {absl::CancelledError("the chief is stopping"), absl::FailedPreconditionError("another chief has the logdir")}) {
    wish_.Want("enough");
    EXPECT_FALSE(wish_.OnTried(error, now_));
    EXPECT_FALSE(wish_.wanted());
  }
}

}  // namespace
}  // namespace lockstep
