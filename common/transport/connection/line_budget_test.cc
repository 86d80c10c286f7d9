#include "lockstep/common/transport/connection/line_budget.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(LineBudgetTest, CountsLinesItLeavesOut) {
  LineBudget budget(2, absl::Seconds(10));
  const absl::Time start = absl::FromUnixSeconds(1000);
  EXPECT_EQ(budget.Take(start), absl::optional<int64_t>(0));
  EXPECT_EQ(budget.Take(start + absl::Seconds(1)), absl::optional<int64_t>(0));
  for (int i = 2; i < 7; ++i) EXPECT_EQ(budget.Take(start + absl::Seconds(i)), absl::nullopt);
  EXPECT_EQ(budget.Take(start + absl::Seconds(10)), absl::optional<int64_t>(5));
  EXPECT_EQ(budget.Take(start + absl::Seconds(11)), absl::optional<int64_t>(0));
  EXPECT_EQ(budget.Take(start + absl::Seconds(12)), absl::nullopt);
}

}  // namespace
}  // namespace lockstep
