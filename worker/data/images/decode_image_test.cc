#include "lockstep/worker/data/images/decode_image.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/worker/data/images/testing/image_encoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint8_t> Pixels(const std::string& file, int64_t channels) {
  const auto image = DecodeImage(file, channels);
  EXPECT_TRUE(image.ok()) << image.status();
  return image.ok() ? image->pixels : std::vector<uint8_t>();
}

std::string Message(const std::string& file, int64_t max_pixels = kMaxImagePixels) {
  const absl::Status status = DecodeImage(file, 3, max_pixels).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  return std::string(status.message());
}

TEST(DecodeImageTest, EveryKindOfPngHasItsPixels) {
  const ByteImage colours = TestImage(9, 11, 3), grey = TestImage(9, 11, 1);
  for (const bool interlaced : {false, true}) {
    for (const bool alpha : {false, true}) {
      for (const int bit_depth : {8, 16}) {
        const PngEncoding encoding = {bit_depth, interlaced, alpha};
        EXPECT_EQ(Pixels(EncodePng(colours, encoding), 3), colours.pixels) << bit_depth << interlaced << alpha;
        EXPECT_EQ(Pixels(EncodePng(grey, encoding), 1), grey.pixels) << bit_depth << interlaced << alpha;
      }
    }
    EXPECT_EQ(Pixels(EncodePng(colours, {8, interlaced, false, /*palette=*/true}), 3), colours.pixels);
  }
}

TEST(DecodeImageTest, JpegIsCloseToItsOriginal) {
  for (const int64_t channels : {1, 3}) {
    const ByteImage image = TestImage(17, 23, channels);
    const std::vector<uint8_t> baseline = Pixels(EncodeJpeg(image, {100}), channels);
    ASSERT_EQ(baseline.size(), image.pixels.size());
    int64_t distance = 0;
    for (size_t i = 0; i < baseline.size(); ++i) distance += std::abs(baseline[i] - image.pixels[i]);
    EXPECT_LT(distance / static_cast<int64_t>(baseline.size()), 12);
    EXPECT_EQ(Pixels(EncodeJpeg(image, {100, /*progressive=*/true}), channels), baseline);
  }
}

TEST(DecodeImageTest, CmykBecomesColours) {
  const ByteImage white = {8, 8, 3, std::vector<uint8_t>(8 * 8 * 3, 255)};
  // The test's encoder writes Adobe's marker, so the numbers are inverted: 255 * 155 / 255.
  EXPECT_EQ(Pixels(EncodeJpeg(white, {100, false, /*cmyk=*/true}), 3), std::vector<uint8_t>(8 * 8 * 3, 155));
}

TEST(DecodeImageTest, GreyBecomesColoursAndColoursGrey) {
  EXPECT_THAT(Pixels(EncodePng({1, 2, 1, {7, 200}}), 3), ElementsAre(7, 7, 7, 200, 200, 200));
  EXPECT_THAT(Pixels(EncodePng({1, 3, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}}), 1), ElementsAre(76, 150, 29));
}

TEST(DecodeImageTest, AFileThatEndsEarlyIsDamaged) {
  const ByteImage image = TestImage(40, 40, 3);
  for (const std::string& file : {EncodePng(image), EncodePng(image, {8, true}), EncodeJpeg(image),
                                  EncodeJpeg(image, {90, /*progressive=*/true})}) {
    for (size_t size = 8; size < file.size(); size += 1 + file.size() / 50) {
      EXPECT_THAT(Message(file.substr(0, size)), HasSubstr("damaged"));
    }
    EXPECT_THAT(Message(file.substr(0, file.size() - 1)), HasSubstr("damaged"));
  }
}

TEST(DecodeImageTest, AWrongByteOfAPngIsDamage) {
  std::string file = EncodePng(TestImage(20, 20, 3));
  file[file.size() / 2] ^= 1;
  EXPECT_THAT(Message(file), HasSubstr("the PNG image is damaged: "));
}

TEST(DecodeImageTest, OtherFormatsAreNamed) {
  EXPECT_THAT(Message("GIF89a..."), HasSubstr("the image is GIF, must be PNG or JPEG; convert it"));
  EXPECT_THAT(Message("RIFF1234WEBPVP8 "), HasSubstr("is WebP"));
  EXPECT_THAT(Message("RIFF1"), HasSubstr("starts with 5249464631"));
  EXPECT_THAT(Message("<!DOCTYPE html><html>"), HasSubstr("web page"));
  EXPECT_THAT(Message("hello"), HasSubstr("starts with 68656c6c6f"));
  EXPECT_THAT(Message(""), HasSubstr("empty"));
}

TEST(DecodeImageTest, RefusesLargeImagesBeforeDecoding) {
  const ByteImage image = TestImage(10, 11, 3);
  for (const std::string& file : {EncodePng(image), EncodeJpeg(image)}) {
    EXPECT_THAT(Message(file, 109), HasSubstr("the image has 10 x 11 pixels, more than 109"));
    EXPECT_TRUE(DecodeImage(file, 3, 110).ok());
  }
}

// A small file that claims to have many pixels must not cause memory for them to be reserved.
TEST(DecodeImageTest, PixelsThatCannotBeInAFileAreRefused) {
  std::string file = EncodePng({1, 1, 1, {0}});
  // Changes the header's height and width, and its checksum.
  const std::string header("IHDR\0\0\x1f\xff\0\0\x1f\xff\x08\0\0\0\0", 17);
  uint32_t crc = 0xffffffff;
  for (const char c : header) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  crc = ~crc;
  file.replace(12, 17, header);
  for (int i = 0; i < 4; ++i) file[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  EXPECT_THAT(Message(file), HasSubstr("8191 x 8191 pixels cannot be in"));
}

TEST(DecodeImageTest, TheVersionNamesBothLibraries) {
  EXPECT_THAT(ImageDecoderVersion(), ::testing::MatchesRegex("libpng 1[.].*, libjpeg-turbo [0-9]+[.].*"));
}

}  // namespace
}  // namespace lockstep
