#include "lockstep/cli/report/variable_table.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(VariableTableTest, ComputesStatisticsOfTheElements) {
  const auto numbers = StatisticsOf(Tensor::FromValues<float>({2, 2}, {1, 3, -1, 5}));
  ASSERT_TRUE(numbers.has_value());
  EXPECT_EQ(numbers->min, -1);
  EXPECT_EQ(numbers->max, 5);
  EXPECT_EQ(numbers->mean, 2);
  EXPECT_DOUBLE_EQ(numbers->deviation, std::sqrt(5.0));
  EXPECT_EQ(StatisticsOf(Tensor::FromValues<int64_t>({}, {12}))->mean, 12);
  EXPECT_EQ(StatisticsOf(Tensor::FromValues<int32_t>({2}, {-3, 5}))->min, -3);
  EXPECT_EQ(StatisticsOf(Tensor::FromValues<uint8_t>({1}, {200}))->max, 200);
  EXPECT_EQ(StatisticsOf(Tensor::FromValues<bool>({2}, {true, false}))->mean, 0.5);
}

TEST(VariableTableTest, ANanIsNotHidden) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto numbers = StatisticsOf(Tensor::FromValues<float>({2}, {1, nan}));
  for (const double number : {numbers->min, numbers->max, numbers->mean, numbers->deviation}) {
    EXPECT_TRUE(std::isnan(number));
  }
}

TEST(VariableTableTest, OtherTypesHaveNone) {
  EXPECT_FALSE(StatisticsOf(Tensor()).has_value());
  EXPECT_FALSE(StatisticsOf(Tensor::FromValues<double>({1}, {12})).has_value());
}

TEST(VariableTableTest, PrintsStatisticsWhereTheyAre) {
  const std::vector<VariableRow> rows = {{"w", "float32", "[2]", 8, ValueStatistics{-1, 0.5, -0.25, 0.75}},
                                         {"odd\n", "uint8", "[]", 1, absl::nullopt}};
  std::ostringstream table, json;
  PrintVariableTable(rows, table);
  EXPECT_EQ(table.str(),
            "name   dtype    shape         bytes         min         max        mean   deviation\n"
            "w      float32  [2]               8          -1         0.5       -0.25        0.75\n"
            "odd\\n  uint8    []                1\n");
  PrintVariableJson(rows, json);
  EXPECT_EQ(json.str(),
            "[\n"
            "  {\"name\": \"w\", \"dtype\": \"float32\", \"shape\": [2], \"bytes\": 8, \"min\": -1, \"max\": 0.5, "
            "\"mean\": -0.25, \"deviation\": 0.75},\n"
            "  {\"name\": \"odd\\u000a\", \"dtype\": \"uint8\", \"shape\": [], \"bytes\": 1}]");
  EXPECT_EQ(TotalBytes(rows), 9u);
}

TEST(VariableTableTest, TheFirstRowMayLackStatistics) {
  std::ostringstream table;
  PrintVariableTable(
      {{"none", "float64", "[]", 8, absl::nullopt}, {"w", "int32", "[]", 4, ValueStatistics{7, 7, 7, 0}}}, table);
  EXPECT_EQ(table.str(),
            "name  dtype    shape         bytes         min         max        mean   deviation\n"
            "none  float64  []                8\n"
            "w     int32    []                4           7           7           7           0\n");
}

}  // namespace
}  // namespace lockstep
