#include "lockstep/common/base/catch_exceptions.h"

#include <stdexcept>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(CatchExceptionsTest, PassesOnAResult) {
  EXPECT_EQ(CatchExceptions([] { return absl::DataLossError("the disk"); }), absl::DataLossError("the disk"));
  EXPECT_EQ(CatchExceptions([] { return absl::StatusOr<int>(3); }).value(), 3);
}

TEST(CatchExceptionsTest, TurnsAnExceptionIntoAnError) {
  const auto throws = []() -> absl::StatusOr<int> { throw std::out_of_range("stod"); };
  EXPECT_EQ(CatchExceptions(throws).status(), absl::InternalError("exception: stod"));
  const auto throws_number = []() -> absl::Status { throw 3; };
  EXPECT_EQ(CatchExceptions(throws_number), absl::InternalError("exception of a type without a message"));
}

}  // namespace
}  // namespace lockstep
