#include "lockstep/worker/data/images/image_form.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/worker/data/images/testing/image_encoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ImageForm> Form(const std::string& text) {
  config::v1::InputConfig::ImageForm config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return ImageForm::Create(config);
}

// Converts the image to the form and returns the values, multiplied by 255.
std::vector<float> Resized(const std::string& text, const ByteImage& image) {
  const ImageForm form = Form(text).value();
  std::vector<float> out(form.shape().num_elements());
  form.Resize(image, out.data());
  for (float& x : out) x *= 255;
  return out;
}

TEST(ImageFormTest, AnImageOfTheFormKeepsItsBytes) {
  const ByteImage image = TestImage(4, 5, 3);
  const ImageForm form = Form("height: 4 width: 5 fit: EXACT").value();
  EXPECT_EQ(form.shape(), (Shape{4, 5, 3}));
  std::vector<float> out(60);
  ASSERT_EQ(form.Fill(EncodePng(image), out.data()), absl::OkStatus());
  for (int i = 0; i < 60; ++i) EXPECT_EQ(out[i], static_cast<float>(image.pixels[i]) / 255.0f);
}

// The expected numbers are from tf.image.resize([[0, 100, 200, 40]], [1, n]).
TEST(ImageFormTest, StretchIsBilinearBetweenPixelCentres) {
  const ByteImage row = {1, 4, 1, {0, 100, 200, 40}};
  EXPECT_THAT(Resized("height: 1 width: 2 channels: 1", row), ElementsAre(50, 120));
  const std::vector<float> wide = Resized("height: 1 width: 8 channels: 1", row);
  const float expected[] = {0, 25, 75, 125, 175, 160, 80, 40};
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(wide[i], expected[i], 1e-4);
}

TEST(ImageFormTest, CropTakesTheMiddle) {
  EXPECT_THAT(Resized("height: 1 width: 2 channels: 1 fit: CROP", {1, 4, 1, {10, 20, 30, 40}}), ElementsAre(20, 30));
  EXPECT_THAT(Resized("height: 2 width: 1 channels: 1 fit: CROP", {4, 1, 1, {10, 20, 30, 40}}), ElementsAre(20, 30));
  // A 5 x 4 image is cropped to rows 0.5 to 4.5 for an output of 2 x 2.
  const ByteImage tall = {5, 4, 1, {0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 100, 100, 100, 100}};
  EXPECT_THAT(Resized("height: 2 width: 2 channels: 1 fit: CROP", tall), ElementsAre(9, 9, 9, 9));
}

TEST(ImageFormTest, AnotherSizeIsDamageIfItMustBeExact) {
  std::vector<float> out(60);
  const absl::Status status =
      Form("height: 4 width: 5 fit: EXACT").value().Fill(EncodePng(TestImage(5, 4, 3)), out.data());
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 5 x 4 pixels, expected 4 x 5"));
}

TEST(ImageFormTest, RefusesFormsOutOfRange) {
  EXPECT_THAT(std::string(Form("width: 5").status().message()), HasSubstr("height is 0"));
  EXPECT_THAT(std::string(Form("height: 5 width: 70000").status().message()), HasSubstr("width is 70000"));
  EXPECT_THAT(std::string(Form("height: 5 width: 5 channels: 2").status().message()), HasSubstr("channels is 2"));
  EXPECT_THAT(std::string(Form("height: 60000 width: 60000").status().message()), HasSubstr("height is 60000"));
}

TEST(ImageFormTest, TheFingerprintHasFormAndDecoder) {
  const std::string fingerprint = Form("height: 4 width: 5").value().Fingerprint();
  EXPECT_THAT(fingerprint, HasSubstr(ImageDecoderVersion()));
  EXPECT_NE(fingerprint, Form("height: 4 width: 5 fit: CROP").value().Fingerprint());
  EXPECT_NE(fingerprint, Form("height: 5 width: 4").value().Fingerprint());
}

}  // namespace
}  // namespace lockstep
