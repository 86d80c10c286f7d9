#include "lockstep/cli/look/contact_sheet.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/worker/data/images/decode_image.h"

namespace lockstep {
namespace {

ByteImage Draw(const Shape& shape, const std::vector<float>& images, const std::vector<int64_t>& labels, float white) {
  const auto sheet = ContactSheet(shape, images, labels, 0, white);
  EXPECT_TRUE(sheet.ok()) << sheet.status();
  return DecodeImage(*sheet, shape.rank() == 3 ? shape.dim(2) : 1).value();
}

uint8_t At(const ByteImage& image, int64_t y, int64_t x, int64_t c = 0) {
  return image.pixels[(y * image.width + x) * image.channels + c];
}

TEST(ContactSheetTest, SmallImagesAreEnlarged) {
  // Two images of 1 x 2: black and white, white and gray.
  const ByteImage sheet = Draw(Shape{1, 2, 1}, {0, 1, 1, 0.5f}, {}, 1);
  EXPECT_EQ(sheet.height, 48 + 12);
  EXPECT_EQ(sheet.width, 2 * 96 + 18);
  EXPECT_EQ(At(sheet, 0, 0), 255);
  EXPECT_EQ(At(sheet, 6, 6), 0);
  EXPECT_EQ(At(sheet, 53, 53), 0);
  EXPECT_EQ(At(sheet, 6, 54), 255);
  EXPECT_EQ(At(sheet, 6, 108 + 48), 128);
}

TEST(ContactSheetTest, LargeImagesLosePixels) {
  std::vector<float> image(200 * 100 * 3, 2);
  const ByteImage sheet = Draw(Shape{200, 100, 3}, image, {}, 4);
  EXPECT_EQ(sheet.height, 100 + 12);
  EXPECT_EQ(sheet.width, 50 + 12);
  EXPECT_EQ(At(sheet, 105, 55, 2), 128);
}

TEST(ContactSheetTest, LabelsStandBelow) {
  const ByteImage sheet = Draw(Shape{96, 96}, std::vector<float>(96 * 96), {10}, 1);
  EXPECT_EQ(sheet.height, 96 + 12 + 14);
  // A 1 has ink in the middle of its first row and none on the right; a 0 has ink in the corner.
  EXPECT_EQ(At(sheet, 104, 8), 40);
  EXPECT_EQ(At(sheet, 104, 10), 255);
  EXPECT_EQ(At(sheet, 104, 14), 40);
}

TEST(ContactSheetTest, OnlyImagesCanBeDrawn) {
  EXPECT_TRUE(IsImage(Shape{2, 3, 1}) && IsImage(Shape{2, 3, 3}) && IsImage(Shape{2, 3}));
  EXPECT_FALSE(IsImage(Shape{2, 3, 2}) || IsImage(Shape{3}));
}

}  // namespace
}  // namespace lockstep
