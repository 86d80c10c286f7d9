#include "lockstep/common/base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(Utf8Test, TakesEveryLengthOfACharacter) {
  for (const char* text : {"", "a", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(std::string("a\0b", 3)));
}

TEST(Utf8Test, RefusesInvalidBytes) {
  for (const char* text : {"caf\xe9", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc0\xaf", "\xe0\x80\xaf",
                           "\xf0\x80\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

TEST(Utf8Test, CutsBetweenCharactersReplacesBadOnes) {
  EXPECT_EQ(ToUtf8("caf\xc3\xa9", 100), "caf\xc3\xa9");
  EXPECT_EQ(ToUtf8("caf\xc3\xa9", 5), "caf\xc3\xa9");
  EXPECT_EQ(ToUtf8("caf\xc3\xa9", 4), "caf");
  EXPECT_EQ(ToUtf8("\xf0\x9f\x98\x80", 3), "");
  EXPECT_EQ(ToUtf8("caf\xe9 \xe2\x82", 100), "caf? ??") << "Latin-1, and a character that was cut";
  EXPECT_EQ(ToUtf8("\xed\xa0\x80", 2), "??");
  EXPECT_EQ(ToUtf8("", 0), "");
}

TEST(Utf8Test, ControlCharactersArePrintedAsNumbers) {
  EXPECT_EQ(Printable("caf\xc3\xa9\t'x' \xf0\x9f\x98\x80"), "caf\xc3\xa9\t'x' \xf0\x9f\x98\x80");
  EXPECT_EQ(Printable(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\x1b[2J\x7f\n"), "\\x1b[2J\\x7f\\x0a");
  EXPECT_EQ(Printable("\xc2\x9b\xc2\xa0"), "\\xc2\\x9b\xc2\xa0");
  EXPECT_EQ(Printable("caf\xe9"), "caf\\xe9");
}

}  // namespace
}  // namespace lockstep
