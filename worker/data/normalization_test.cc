#include "lockstep/worker/data/normalization.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

config::v1::InputConfig::Normalization Config(float mean, float stddev) {
  config::v1::InputConfig::Normalization config;
  config.set_mean(mean);
  config.set_stddev(stddev);
  return config;
}

TEST(NormalizationTest, ByDefaultChangesNothing) {
  EXPECT_TRUE(Normalization().identity());
  EXPECT_TRUE(Normalization::Create(config::v1::InputConfig::Normalization())->identity());
  EXPECT_EQ(Normalization()(0.3f), 0.3f);
}

TEST(NormalizationTest, SubtractsTheMeanAndDividesByStddev) {
  const Normalization normalization = *Normalization::Create(Config(0.1f, 0.3f));
  std::vector<float> values = {0, 0.1f, 0.5f, 1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> before = values;
  normalization.Apply(absl::MakeSpan(values));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], (before[i] - 0.1f) / 0.3f);
    EXPECT_EQ(values[i], normalization(before[i]));
  }
}

// A byte is converted to the same float regardless of how many bytes are converted together.
TEST(NormalizationTest, TurnsBytesIntoFractionsOf255) {
  for (const Normalization& normalization : {Normalization(), *Normalization::Create(Config(0.28f, 0.35f))}) {
    for (const size_t size : {0, 1, 15, 16, 17, 31, 255, 256}) {
      std::vector<uint8_t> bytes(size);
      for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(255 - i);
      std::vector<float> out(size + 1, -7.0f);
      normalization.FromBytes(bytes, out.data());
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(out[i], normalization(static_cast<float>(255 - i) / 255.0f));
      EXPECT_EQ(out[size], -7.0f);
    }
  }
}

TEST(NormalizationTest, RefusesNumbersThatMakeNoSense) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& config : {Config(0, 0), Config(0, -1), Config(infinity, 1), Config(0, infinity), Config(0, NAN)}) {
    const absl::Status status = Normalization::Create(config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("input.normalization has mean"));
  }
}

}  // namespace
}  // namespace lockstep
