#include "lockstep/common/base/status_macros.h"

#include <memory>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

absl::Status Check(absl::Status status, bool* went_on) {
  RETURN_IF_ERROR(status);
  *went_on = true;
  return absl::OkStatus();
}

TEST(StatusMacrosTest, ReturnIfErrorReturnsTheErrorAlone) {
  bool went_on = false;
  EXPECT_EQ(Check(absl::DataLossError("x"), &went_on), absl::DataLossError("x"));
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(Check(absl::OkStatus(), &went_on).ok());
  EXPECT_TRUE(went_on);
}

TEST(StatusMacrosTest, ReturnIfErrorEvaluatesOnce) {
  int evaluations = 0;
  const auto f = [&]() -> absl::Status {
    RETURN_IF_ERROR((++evaluations, absl::OkStatus()));
    return absl::OkStatus();
  };
  EXPECT_TRUE(f().ok());
  EXPECT_EQ(evaluations, 1);
}

TEST(StatusMacrosTest, ReturnIfErrorIsOneStatement) {
  const auto f = [](bool check) -> absl::Status {
    if (check)
      RETURN_IF_ERROR(absl::InternalError("checked"));
    else
      return absl::InternalError("not checked");
    return absl::OkStatus();
  };
  EXPECT_EQ(f(true), absl::InternalError("checked"));
  EXPECT_EQ(f(false), absl::InternalError("not checked"));
}

absl::StatusOr<std::unique_ptr<int>> Half(absl::StatusOr<int> number) {
  ASSIGN_OR_RETURN(const int n, number);
  return std::make_unique<int>(n / 2);
}

absl::StatusOr<int> Quarter(absl::StatusOr<int> number) {
  std::unique_ptr<int> half;
  ASSIGN_OR_RETURN(half, Half(number));
  ASSIGN_OR_RETURN(const auto quarter, Half(*half));
  return *quarter;
}

TEST(StatusMacrosTest, AssignOrReturnMovesOrReturnsTheError) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(absl::NotFoundError("no number")).status(), absl::NotFoundError("no number"));
}

}  // namespace
}  // namespace lockstep
