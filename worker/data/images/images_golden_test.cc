// Compares decoded and resized images with TensorFlow's results, which tests/golden/images_golden.py wrote.
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "lockstep/worker/data/images/decode_image.h"
#include "lockstep/worker/data/images/image_form.h"

namespace lockstep {
namespace {

struct GoldenImage {
  std::string name, file, pixels, resized;
  int64_t channels = 0, height = 0, width = 0;
  config::v1::InputConfig::ImageForm form;
};

std::vector<GoldenImage> ReadImages() {
  std::ifstream file("tests/golden/images_golden.txt");
  std::vector<GoldenImage> images;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    GoldenImage image;
    std::string encoded, pixels, resized;
    int64_t height, width;
    line >> image.name >> encoded >> image.channels >> image.height >> image.width >> pixels >> height >> width >>
        resized;
    EXPECT_FALSE(line.fail());
    image.file = absl::HexStringToBytes(encoded);
    image.pixels = absl::HexStringToBytes(pixels);
    image.resized = absl::HexStringToBytes(resized);
    image.form.set_height(height);
    image.form.set_width(width);
    image.form.set_channels(image.channels);
    images.push_back(image);
  }
  EXPECT_EQ(images.size(), 10);
  return images;
}

TEST(ImagesGoldenTest, PixelsAreTensorFlows) {
  for (const GoldenImage& golden : ReadImages()) {
    const auto image = DecodeImage(golden.file, golden.channels);
    ASSERT_TRUE(image.ok()) << golden.name << ": " << image.status();
    EXPECT_EQ(image->height, golden.height) << golden.name;
    EXPECT_EQ(image->width, golden.width) << golden.name;
    EXPECT_EQ(std::string(image->pixels.begin(), image->pixels.end()), golden.pixels) << golden.name;
  }
}

TEST(ImagesGoldenTest, SizesAreChangedAsTensorFlowDoes) {
  for (const GoldenImage& golden : ReadImages()) {
    const ImageForm form = ImageForm::Create(golden.form).value();
    std::vector<float> values(form.shape().num_elements()), expected(values.size());
    ASSERT_EQ(form.Fill(golden.file, values.data()), absl::OkStatus());
    ASSERT_EQ(golden.resized.size(), expected.size() * sizeof(float));
    std::memcpy(expected.data(), golden.resized.data(), golden.resized.size());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i] * 255, expected[i], 1e-3) << golden.name << " " << i;
  }
}

}  // namespace
}  // namespace lockstep
