#include "common/io/crc32c.h"

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

TEST(Crc32cTest, ExtendsAChecksumByWhatFollows) {
  EXPECT_EQ(ExtendCrc32c(Crc32c("1234"), "56789"), Crc32c("123456789"));
  EXPECT_EQ(ExtendCrc32c(Crc32c("123456789"), ""), Crc32c("123456789"));
}

TEST(Crc32cTest, UnmasksWhatItMasked) {
  const uint32_t crc = Crc32c("foo");
  EXPECT_NE(MaskCrc32c(crc), crc);
  EXPECT_NE(MaskCrc32c(MaskCrc32c(crc)), crc);
  EXPECT_EQ(UnmaskCrc32c(MaskCrc32c(crc)), crc);
  EXPECT_EQ(MaskCrc32c(0), 0xa282ead8u);
}

}  // namespace
}  // namespace lockstep
