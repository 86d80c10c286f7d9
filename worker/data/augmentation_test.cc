#include "lockstep/worker/data/augmentation.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAreArray;

config::v1::InputConfig::Augmentation Config(bool flip, int64_t crop_padding) {
  config::v1::InputConfig::Augmentation config;
  config.set_flip(flip);
  config.set_crop_padding(crop_padding);
  return config;
}

ExampleSpec ImageSpec(Shape shape) {
  ExampleSpec spec;
  spec.features_shape = shape;
  spec.classes = 2;
  return spec;
}

Batch Images(Shape shape) {
  Batch batch;
  batch.size = shape.dim(0);
  batch.features = Tensor(v1::DT_FLOAT, shape);
  for (int64_t i = 0; i < batch.features.num_elements(); ++i) batch.features.flat<float>()[i] = 1.0f + i;
  return batch;
}

Batch Applied(const Augmentation& augmentation, int64_t step, int64_t slot, Batch batch) {
  augmentation.Apply(step, slot, &batch);
  return batch;
}

TEST(AugmentationTest, ChangesNothingUnlessAsked) {
  const Augmentation none = *Augmentation::Create(Config(false, 0), ImageSpec({2, 2, 1}), Normalization(), 1);
  const Batch images = Images({3, 2, 2, 1});
  EXPECT_EQ(Applied(none, 4, 1, images).features.bytes(), images.features.bytes());
}

TEST(AugmentationTest, FlipsAboutHalfOfTheImages) {
  const Augmentation flip = *Augmentation::Create(Config(true, 0), ImageSpec({1, 2, 2}), Normalization(), 1);
  Batch images = Images({1000, 1, 2, 2});
  for (int i = 0; i < 1000; ++i) {
    for (int e = 0; e < 4; ++e) images.features.flat<float>()[4 * i + e] = e;
  }
  const Batch flipped = Applied(flip, 0, 0, images);
  int count = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto image = flipped.features.flat<float>().subspan(4 * i, 4);
    const bool changed = image[0] == 2;
    if (changed) {
      EXPECT_THAT(image, ElementsAreArray({2, 3, 0, 1}));
    } else {
      EXPECT_THAT(image, ElementsAreArray({0, 1, 2, 3}));
    }
    count += changed;
  }
  EXPECT_NEAR(count, 500, 80);
}

TEST(AugmentationTest, CropsEveryPlaceOfThePaddedImage) {
  config::v1::InputConfig::Normalization normalization;
  normalization.set_mean(1.0f);
  normalization.set_stddev(0.5f);
  const Augmentation crop =
      *Augmentation::Create(Config(false, 1), ImageSpec({2, 2, 1}), *Normalization::Create(normalization), 1);
  Batch images = Images({500, 2, 2, 1});
  for (int i = 0; i < 2000; ++i) images.features.flat<float>()[i] = i % 4;
  std::set<std::vector<float>> seen;
  const Batch cropped = Applied(crop, 0, 0, images);
  for (int i = 0; i < 500; ++i) {
    const auto image = cropped.features.flat<float>().subspan(4 * i, 4);
    seen.insert(std::vector<float>(image.begin(), image.end()));
  }
  // Normalized zero: (0 - 1) / 0.5.
  const float z = -2;
  const std::set<std::vector<float>> expected = {{z, z, z, 0}, {z, z, 0, 1}, {z, z, 1, z}, {z, 0, z, 2}, {0, 1, 2, 3},
                                                 {1, z, 3, z}, {z, 2, z, z}, {2, 3, z, z}, {3, z, z, z}};
  EXPECT_EQ(seen, expected);
}

TEST(AugmentationTest, DependsOnSeedStepAndSlotAlone) {
  const Batch images = Images({16, 4, 4, 1});
  const auto create = [](uint64_t seed) {
    return *Augmentation::Create(Config(true, 2), ImageSpec({4, 4, 1}), Normalization(), seed);
  };
  const std::string once(Applied(create(1), 5, 2, images).features.bytes());
  EXPECT_EQ(Applied(create(1), 5, 2, images).features.bytes(), once);
  EXPECT_NE(Applied(create(2), 5, 2, images).features.bytes(), once);
  EXPECT_NE(Applied(create(1), 6, 2, images).features.bytes(), once);
  EXPECT_NE(Applied(create(1), 5, 3, images).features.bytes(), once);
}

TEST(AugmentationTest, IsRefusedForOtherThanImages) {
  EXPECT_EQ(Augmentation::Create(Config(true, 0), ImageSpec({4}), Normalization(), 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  ExampleSpec ids = ImageSpec({4, 4, 1});
  ids.features_dtype = v1::DT_INT32;
  EXPECT_EQ(Augmentation::Create(Config(false, 1), ids, Normalization(), 1).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Augmentation::Create(Config(false, 0), ids, Normalization(), 1).ok());
  EXPECT_FALSE(Augmentation::Create(Config(false, -1), ImageSpec({4, 4, 1}), Normalization(), 1).ok());
}

}  // namespace
}  // namespace lockstep
