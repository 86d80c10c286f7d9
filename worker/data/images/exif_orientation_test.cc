#include "lockstep/worker/data/images/exif_orientation.h"

#include <string>

#include "gtest/gtest.h"
#include "lockstep/worker/data/images/testing/image_encoder.h"

namespace lockstep {
namespace {

// Inserts an APP1 segment with the orientation after the start of a JPEG file.
std::string WithOrientation(char orientation, bool little_endian) {
  const auto number = [little_endian](int value, int size) {
    std::string bytes;
    for (int i = 0; i < size; ++i) {
      bytes.push_back(static_cast<char>(value >> 8 * (little_endian ? i : size - 1 - i)));
    }
    return bytes;
  };
  const std::string entry = number(0x0112, 2) + number(3, 2) + number(1, 4) + number(orientation, 2) + number(0, 2);
  const std::string other = number(0x010f, 2) + number(2, 2) + number(1, 4) + number(0, 4);
  const std::string tiff =
      (little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) + number(2, 2) + other + entry + number(0, 4);
  const std::string contents = std::string("Exif\0\0", 6) + tiff;
  const size_t length = contents.size() + 2;
  std::string file = EncodeJpeg(TestImage(8, 8, 3));
  file.insert(2, std::string("\xff\xe1") + static_cast<char>(length >> 8) + static_cast<char>(length) + contents);
  return file;
}

TEST(ExifOrientationTest, ReadsBothByteOrders) {
  for (const bool little_endian : {false, true}) {
    for (const char orientation : {1, 3, 6, 8}) {
      EXPECT_EQ(ExifOrientation(WithOrientation(orientation, little_endian)), orientation);
    }
    EXPECT_EQ(ExifOrientation(WithOrientation(9, little_endian)), 1);
  }
}

TEST(ExifOrientationTest, OtherFilesAreUpright) {
  EXPECT_EQ(ExifOrientation(""), 1);
  EXPECT_EQ(ExifOrientation(EncodePng(TestImage(2, 2, 1))), 1);
  EXPECT_EQ(ExifOrientation(EncodeJpeg(TestImage(2, 2, 1))), 1);
}

TEST(ExifOrientationTest, AFileMayEndAnywhere) {
  const std::string file = WithOrientation(6, true);
  for (size_t size = 0; size < 80; ++size) {
    const int orientation = ExifOrientation(file.substr(0, size));
    EXPECT_TRUE(orientation == 1 || orientation == 6);
  }
}

}  // namespace
}  // namespace lockstep
