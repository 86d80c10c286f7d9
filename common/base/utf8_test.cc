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

TEST(Utf8Test, RefusesWhatIsNone) {
  for (const char* text : {"caf\xe9", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc0\xaf", "\xe0\x80\xaf",
                           "\xf0\x80\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

}  // namespace
}  // namespace lockstep
