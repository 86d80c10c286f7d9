#include "lockstep/common/io/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// RFC 3720, section B.4.
TEST(Crc32cTest, GivesTheStandardsValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(Crc32cTest, ExtendsAChecksum) {
  EXPECT_EQ(ExtendCrc32c(Crc32c("1234"), "56789"), Crc32c("123456789"));
  EXPECT_EQ(ExtendCrc32c(Crc32c("123456789"), ""), Crc32c("123456789"));
}

TEST(Crc32cTest, CombinesTheChecksumsOfTwoTexts) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text.push_back(static_cast<char>(i * i >> 3));
  for (const size_t split : {0, 1, 7, 500, 999, 1000}) {
    const std::string first = text.substr(0, split), second = text.substr(split);
    EXPECT_EQ(CombineCrc32c(Crc32c(first), Crc32c(second), second.size()), Crc32c(text)) << split;
  }
  // Uses lengths too large for a real string. Appending zeros in two steps gives the same checksum as in one.
  const uint64_t half = uint64_t{1} << 40;
  const uint32_t once = CombineCrc32c(Crc32c("x"), 0, half);
  EXPECT_EQ(CombineCrc32c(once, 0, half), CombineCrc32c(Crc32c("x"), 0, 2 * half));
}

TEST(Crc32cTest, UnmaskReversesMask) {
  const uint32_t crc = Crc32c("foo");
  EXPECT_NE(MaskCrc32c(crc), crc);
  EXPECT_NE(MaskCrc32c(MaskCrc32c(crc)), crc);
  EXPECT_EQ(UnmaskCrc32c(MaskCrc32c(crc)), crc);
  EXPECT_EQ(MaskCrc32c(0), 0xa282ead8u);
}

}  // namespace
}  // namespace lockstep
