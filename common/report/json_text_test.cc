#include "lockstep/common/report/json_text.h"

#include <limits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(JsonTextTest, EscapesForbiddenCharacters) {
  EXPECT_EQ(JsonString("a\"b\\c\n\x01é"), "\"a\\\"b\\\\c\\u000a\\u0001é\"");
  EXPECT_EQ(JsonString(""), "\"\"");
}

TEST(JsonTextTest, WritesNumbersThatReadBackTheSame) {
  EXPECT_EQ(JsonNumber(0.8845), "0.8845");
  EXPECT_EQ(JsonNumber(4000), "4000");
  EXPECT_EQ(JsonNumber(-12345678), "-12345678");
  EXPECT_EQ(JsonNumber(0), "0");
  EXPECT_EQ(JsonNumber(0.00002), "0.00002");
  EXPECT_EQ(JsonNumber(-1e-7), "-1e-07");
  EXPECT_EQ(JsonNumber(1e300), "1e+300");
  EXPECT_EQ(JsonNumber(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(JsonNumber(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::quiet_NaN()), "null");
}

}  // namespace
}  // namespace lockstep
