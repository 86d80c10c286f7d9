#include "lockstep/train/events/png.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// tests/conformance checks that TensorFlow and TensorBoard can read the encoded files.
TEST(PngTest, HasTheHeaderOfTheFormat) {
  const std::vector<uint8_t> pixels(2 * 3 * 3, 200);
  const std::string png = EncodePng(2, 3, 3, pixels).value();
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png.substr(8, 8), std::string("\0\0\0\x0dIHDR", 8));
  EXPECT_EQ(png.substr(16, 13), std::string("\0\0\0\3\0\0\0\2\x08\2\0\0\0", 13));
  EXPECT_EQ(png.substr(png.size() - 12), std::string("\0\0\0\0IEND\xae\x42\x60\x82", 12));
}

TEST(PngTest, RefusesWhatIsNoImage) {
  EXPECT_EQ(EncodePng(2, 2, 1, std::vector<uint8_t>(3)).status().message(),
            "an image of [2, 2, 1] has 3 bytes, must have 4");
  EXPECT_EQ(EncodePng(0, 2, 1, {}).status().message(), "an image's height is 0, must be in [1, 32768]");
  EXPECT_EQ(EncodePng(2, 2, 5, std::vector<uint8_t>(20)).status().message(),
            "an image's channels is 5, must be in [1, 4]");
}

}  // namespace
}  // namespace lockstep
