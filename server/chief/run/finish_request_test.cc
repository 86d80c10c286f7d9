#include "lockstep/server/chief/run/finish_request.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

class FinishRequestTest : public ::testing::Test {
 protected:
  FinishRequest request_{7};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(FinishRequestTest, IsNoneAtFirst) {
  EXPECT_FALSE(request_.pending());
  EXPECT_EQ(request_.due(), absl::InfiniteFuture());
}

TEST_F(FinishRequestTest, IsDueAtOnceAndGoneOnceCarriedOut) {
  request_.Set("enough");
  EXPECT_LE(request_.due(), now_);
  request_.Set("another reason");
  EXPECT_EQ(request_.reason(), "enough") << "the first counts";
  EXPECT_FALSE(request_.OnTried(absl::OkStatus(), now_));
  EXPECT_FALSE(request_.pending());
}

TEST_F(FinishRequestTest, IsRetriedLaterIfTheErrorMayPass) {
  request_.Set("enough");
  absl::Duration last;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(request_.OnTried(absl::ResourceExhaustedError("no space left on device"), now_));
    EXPECT_EQ(request_.reason(), "enough");
    const absl::Duration delay = request_.due() - now_;
    EXPECT_GT(delay, absl::ZeroDuration());
    EXPECT_LE(delay, absl::Seconds(2));
    last = delay;
    now_ = request_.due();
  }
  EXPECT_GE(last, absl::Seconds(1)) << "they have grown";
  EXPECT_FALSE(request_.OnTried(absl::OkStatus(), now_));
  EXPECT_EQ(request_.due(), absl::InfiniteFuture());
}

TEST_F(FinishRequestTest, IsGivenUpAtAnyOtherError) {
  for (const absl::Status& error :
       {absl::CancelledError("the chief is stopping"), absl::FailedPreconditionError("another chief has the logdir")}) {
    request_.Set("enough");
    EXPECT_FALSE(request_.OnTried(error, now_));
    EXPECT_FALSE(request_.pending());
  }
}

}  // namespace
}  // namespace lockstep
