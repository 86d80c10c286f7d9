#include "lockstep/worker/nn/compute/padded_images.h"

#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

constexpr int64_t kHeight = 3;
constexpr int64_t kWidth = 4;
constexpr int64_t kChannels = 2;
constexpr PaddedImages::Border kBorder{1, 2, 3, 4};

// Checks every element of image `index`, including the border.
void ExpectPadded(const PaddedImages& images, int64_t index, const std::vector<float>& source) {
  const float* p = images.image(index);
  for (int64_t y = -kBorder.top; y < kHeight + kBorder.bottom; ++y) {
    for (int64_t x = -kBorder.left; x < kWidth + kBorder.right; ++x) {
      for (int64_t c = 0; c < kChannels; ++c, ++p) {
        const bool inside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
        ASSERT_EQ(*p, inside ? source[(y * kWidth + x) * kChannels + c] : 0) << y << " " << x << " " << c;
      }
    }
  }
  EXPECT_EQ(p, images.image(index) + images.image_size());
}

TEST(PaddedImagesTest, PutsZerosAroundEachImage) {
  PaddedImages images(kHeight, kWidth, kChannels, kBorder);
  EXPECT_EQ(images.row_size(), (kWidth + 7) * kChannels);
  EXPECT_EQ(images.image_size(), (kHeight + 3) * images.row_size());
  images.Reserve(3);
  const std::vector<float> source = RandomFloats(3 * kHeight * kWidth * kChannels, 1);
  const auto image = [&](int64_t i) {
    const auto begin = source.begin() + i * kHeight * kWidth * kChannels;
    return std::vector<float>(begin, begin + kHeight * kWidth * kChannels);
  };
  for (const int64_t i : {2, 0, 1}) images.Copy(i, image(i).data());
  for (const int64_t i : {0, 1, 2}) ExpectPadded(images, i, image(i));
}

TEST(PaddedImagesTest, TheBorderOutlivesABatch) {
  PaddedImages images(kHeight, kWidth, kChannels, kBorder);
  images.Reserve(2);
  images.Copy(0, RandomFloats(kHeight * kWidth * kChannels, 1).data());
  const std::vector<float> next = RandomFloats(kHeight * kWidth * kChannels, 2);
  images.Reserve(1);
  images.Copy(0, next.data());
  ExpectPadded(images, 0, next);
}

TEST(PaddedImagesTest, ALargerBatchGetsABorderOfItsOwn) {
  PaddedImages images(kHeight, kWidth, kChannels, kBorder);
  const std::vector<float> source = RandomFloats(kHeight * kWidth * kChannels, 1);
  images.Reserve(1);
  images.Copy(0, source.data());
  images.Reserve(9);
  for (int64_t i = 0; i < 9; ++i) images.Copy(i, source.data());
  for (int64_t i = 0; i < 9; ++i) ExpectPadded(images, i, source);
}

TEST(PaddedImagesTest, AreNeededForABorderOnAnySide) {
  EXPECT_FALSE(PaddedImages(2, 2, 1, {}).needed());
  EXPECT_TRUE(PaddedImages(2, 2, 1, {1, 0, 0, 0}).needed());
  EXPECT_TRUE(PaddedImages(2, 2, 1, {0, 1, 0, 0}).needed());
  EXPECT_TRUE(PaddedImages(2, 2, 1, {0, 0, 1, 0}).needed());
  EXPECT_TRUE(PaddedImages(2, 2, 1, {0, 0, 0, 1}).needed());
}

}  // namespace
}  // namespace lockstep
