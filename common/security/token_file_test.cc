#include "lockstep/common/security/token_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<std::string>> Read(const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "tokens", text).ok());
    return ReadTokens(&fs_, "tokens");
  }
  void ExpectRefused(const std::string& text, const std::string& why) {
    const auto tokens = Read(text);
    EXPECT_TRUE(absl::IsInvalidArgument(tokens.status())) << tokens.status();
    EXPECT_THAT(std::string(tokens.status().message()), HasSubstr(why));
  }
  MemoryFileSystem fs_;
};

TEST_F(TokenFileTest, EachLineIsOneToken) {
  EXPECT_THAT(Read("# old and new\n0123456789abcdef\r\n\n  fedcba9876543210").value(),
              ElementsAre("0123456789abcdef", "fedcba9876543210"));
}

TEST_F(TokenFileTest, NamesLineOfWrongToken) {
  ExpectRefused("0123456789abcdef\nshort\n", "tokens:2: a token has at least 16 visible characters; this one has 5");
  ExpectRefused("0123456789 abcdef", "tokens:1: ");
  ExpectRefused("\n# none\n", "tokens: it has no token");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadTokens(&fs_, "absent").status()));
}

TEST_F(TokenFileTest, ComparesWholeTokens) {
  const std::vector<std::string> tokens = {"0123456789abcdef", "fedcba9876543210"};
  EXPECT_TRUE(IsAmong("fedcba9876543210", tokens));
  EXPECT_FALSE(IsAmong("fedcba987654321", tokens));
  EXPECT_FALSE(IsAmong("fedcba9876543211", tokens));
  EXPECT_FALSE(IsAmong("", tokens));
}

}  // namespace
}  // namespace lockstep
