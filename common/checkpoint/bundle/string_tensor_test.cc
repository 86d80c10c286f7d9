#include "lockstep/common/checkpoint/bundle/string_tensor.h"

#include <string>

#include "gtest/gtest.h"
#include "lockstep/common/io/crc32c.h"

namespace lockstep {
namespace {

// The lengths 1, 0 and 3, space for their checksum, and the strings.
const char kEncoded[] =
    "\x01\x00\x03\x00\x00\x00\x00"
    "abcd";

std::string Encoded(uint32_t* crc) {
  const std::string lengths("\1\0\0\0\0\0\0\0\3\0\0\0", 12);
  const uint32_t masked = MaskCrc32c(Crc32c(lengths));
  std::string encoded(kEncoded, 11);
  std::string checksum;
  for (int i = 0; i < 4; ++i) checksum.push_back(static_cast<char>(masked >> 8 * i));
  encoded.replace(3, 4, checksum);
  *crc = Crc32c(lengths + checksum + "abcd");
  return encoded;
}

TEST(StringTensorTest, AcceptsIntactStrings) {
  uint32_t crc;
  const std::string encoded = Encoded(&crc);
  EXPECT_TRUE(CheckStrings(encoded, 3, crc).ok()) << CheckStrings(encoded, 3, crc);
}

TEST(StringTensorTest, DetectsEveryFlipAndCut) {
  uint32_t crc;
  const std::string encoded = Encoded(&crc);
  for (size_t i = 0; i < encoded.size() * 8; ++i) {
    std::string damaged = encoded;
    damaged[i / 8] ^= 1 << i % 8;
    EXPECT_FALSE(CheckStrings(damaged, 3, crc).ok()) << i;
  }
  for (size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_FALSE(CheckStrings(encoded.substr(0, size), 3, crc).ok()) << size;
  }
  EXPECT_FALSE(CheckStrings(encoded, 2, crc).ok());
  EXPECT_FALSE(CheckStrings(encoded, uint64_t{1} << 62, crc).ok());
  EXPECT_FALSE(CheckStrings(encoded, 3, crc + 1).ok());
}

TEST(StringTensorTest, NamesTheMissingPart) {
  // A string of three bytes without space for the checksum before it.
  EXPECT_EQ(CheckStrings("\x03"
                         "abc",
                         1, 0)
                .message(),
            "strings of 3 bytes and a checksum in 3 bytes");
  EXPECT_EQ(CheckStrings("\x04"
                         "abc",
                         1, 0)
                .message(),
            "string 0 of 1 is cut off");
  EXPECT_EQ(CheckStrings("\x02\x02"
                         "abc",
                         2, 0)
                .message(),
            "string 1 of 2 is cut off");
}

}  // namespace
}  // namespace lockstep
