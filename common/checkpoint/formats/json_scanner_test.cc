#include "lockstep/common/checkpoint/formats/json_scanner.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JsonScannerTest, ResolvesEscapes) {
  std::string text;
  JsonScanner scanner(" \"a\\\"\\\\\\/\\n\\u00e4\\u20AC\\ud83d\\ude00\xc3\xa4\" x");
  ASSERT_TRUE(scanner.TakeString(&text));
  EXPECT_EQ(text, "a\"\\/\n\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa4");
  EXPECT_FALSE(scanner.at_end());
  EXPECT_TRUE(scanner.TakeChar('x'));
  EXPECT_TRUE(scanner.at_end());
}

TEST(JsonScannerTest, RefusesStringsThatAreNone) {
  for (const char* json : {"\"a", "a\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"",
                           "\"\n\"", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\\"}) {
    std::string text = "before";
    JsonScanner scanner(json);
    EXPECT_FALSE(scanner.TakeString(&text)) << json;
    EXPECT_EQ(text, "before");
    EXPECT_EQ(scanner.rest(), json);
  }
}

TEST(JsonScannerTest, TakesListsOfNaturalNumbers) {
  std::vector<int64_t> numbers;
  JsonScanner scanner("[ ] [0, 9223372036854775807]");
  ASSERT_TRUE(scanner.TakeNumbers(&numbers));
  EXPECT_THAT(numbers, IsEmpty());
  ASSERT_TRUE(scanner.TakeNumbers(&numbers));
  EXPECT_THAT(numbers, ElementsAre(0, 9223372036854775807));
  for (const char* json :
       {"[", "[1", "[1,]", "[-1]", "[1.5]", "[01]", "[9223372036854775808]", "1", "[1 2]", "[\"1\"]"}) {
    EXPECT_FALSE(JsonScanner(json).TakeNumbers(&numbers)) << json;
  }
}

}  // namespace
}  // namespace lockstep
