#include "lockstep/train/session/end/reject_out_of_range.h"

#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

TEST(RejectOutOfRangeTest, MakesAnErrorOfIt) {
  EXPECT_EQ(RejectOutOfRange(absl::OutOfRangeError("no more rows")),
            absl::FailedPreconditionError("no more rows (OUT_OF_RANGE ends a run within its loop only)"));
  EXPECT_EQ(RejectOutOfRange(absl::OkStatus()), absl::OkStatus());
  EXPECT_EQ(RejectOutOfRange(absl::AbortedError("gone")), absl::AbortedError("gone"));
}

}  // namespace
}  // namespace lockstep::train
