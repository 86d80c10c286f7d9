#include "lockstep/server/ps/initializer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

using ::testing::Each;

v1::VariableSpec Variable(const std::string& name, std::vector<int64_t> shape, const std::string& initializer) {
  v1::VariableSpec variable;
  variable.set_name(name);
  variable.set_dtype(v1::DT_FLOAT);
  for (const int64_t dim : shape) variable.add_shape(dim);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(initializer, variable.mutable_initializer()));
  return variable;
}

std::vector<float> Initialize(const v1::VariableSpec& variable, uint64_t seed) {
  int64_t n = 1;
  for (const int64_t dim : variable.shape()) n *= dim;
  std::vector<float> values(n, -99.0f);
  InitializeVariable(variable, seed, absl::MakeSpan(values));
  return values;
}

std::vector<float> Initialize(std::vector<int64_t> shape, const std::string& initializer) {
  return Initialize(Variable("hidden/kernel", std::move(shape), initializer), 7);
}

struct Moments {
  explicit Moments(const std::vector<float>& values) {
    for (const float x : values) mean += x / values.size();
    for (const float x : values) stddev += (x - mean) * (x - mean) / values.size();
    stddev = std::sqrt(stddev);
    min = *std::min_element(values.begin(), values.end());
    max = *std::max_element(values.begin(), values.end());
  }
  double mean = 0;
  double stddev = 0;
  float min;
  float max;
};

TEST(InitializerTest, FillsZerosWhenNothingIsSaid) {
  EXPECT_THAT(Initialize({3, 5}, ""), Each(0.0f));
  EXPECT_THAT(Initialize({3, 5}, "zeros {}"), Each(0.0f));
}

TEST(InitializerTest, FillsAConstant) { EXPECT_THAT(Initialize({7}, "constant { value: 1.5 }"), Each(1.5f)); }

TEST(InitializerTest, FillsAScalar) { EXPECT_EQ(Initialize({}, "constant { value: 2 }"), std::vector<float>({2})); }

TEST(InitializerTest, UniformCoversItsRangeEvenly) {
  const auto values = Initialize({1000, 400}, "uniform { min: -1 max: 3 }");
  const Moments moments(values);
  EXPECT_NEAR(moments.mean, 1, 0.01);
  EXPECT_NEAR(moments.stddev, 4 / std::sqrt(12), 0.01);
  EXPECT_GE(moments.min, -1);
  EXPECT_LT(moments.max, 3);
  std::vector<int> tenths(10);
  for (const float x : values) ++tenths[static_cast<int>((x + 1) / 0.4f)];
  for (const int count : tenths) EXPECT_NEAR(count, 40000, 1000);
}

TEST(InitializerTest, NormalHasItsMomentsAndTails) {
  const auto values = Initialize({400000}, "normal { mean: 2 stddev: 0.5 }");
  const Moments moments(values);
  EXPECT_NEAR(moments.mean, 2, 0.005);
  EXPECT_NEAR(moments.stddev, 0.5, 0.005);
  const auto beyond = [&](double sigmas) {
    return std::count_if(values.begin(), values.end(), [&](float x) { return std::abs(x - 2) > sigmas * 0.5; });
  };
  EXPECT_NEAR(beyond(1), 0.3173 * 400000, 1500);
  EXPECT_NEAR(beyond(2), 0.0455 * 400000, 700);
  EXPECT_NEAR(beyond(3), 0.0027 * 400000, 170);
}

TEST(InitializerTest, TruncatedNormalIsWithinTwoDeviations) {
  const auto values = Initialize({400000}, "truncated_normal { mean: -1 stddev: 0.25 }");
  const Moments moments(values);
  EXPECT_NEAR(moments.mean, -1, 0.003);
  // 0.87962566 is the standard deviation of the standard normal distribution truncated to [-2, 2].
  EXPECT_NEAR(moments.stddev, 0.25 * 0.87962566, 0.002);
  EXPECT_GE(moments.min, -1.5f);
  EXPECT_LE(moments.max, -0.5f);
  const auto within_one = std::count_if(values.begin(), values.end(), [](float x) { return std::abs(x + 1) <= 0.25; });
  EXPECT_NEAR(within_one, 0.6827 / 0.9545 * 400000, 1500);
}

TEST(InitializerTest, GlorotUsesBothFans) {
  const float limit = std::sqrt(6.0f / (300 + 100));
  const Moments uniform(Initialize({300, 100}, "glorot {}"));
  EXPECT_NEAR(uniform.max, limit, limit * 0.001);
  EXPECT_LE(uniform.max, limit);
  EXPECT_NEAR(uniform.min, -limit, limit * 0.001);
  const Moments normal(Initialize({300, 100}, "glorot { normal: true }"));
  EXPECT_NEAR(normal.max, 2 * std::sqrt(2.0 / 400), 0.001);
  EXPECT_NEAR(normal.stddev, 0.87962566 * std::sqrt(2.0 / 400), 0.001);
}

TEST(InitializerTest, HeUsesTheFanOfTheInput) {
  const float limit = std::sqrt(6.0f / 300);
  const Moments uniform(Initialize({300, 100}, "he {}"));
  EXPECT_NEAR(uniform.max, limit, limit * 0.001);
  const Moments normal(Initialize({300, 100}, "he { normal: true }"));
  EXPECT_NEAR(normal.max, 2 * std::sqrt(2.0 / 300), 0.001);
}

TEST(InitializerTest, ConvolutionFansCountReceptiveFields) {
  const float limit = std::sqrt(6.0f / (3 * 5 * 32 + 3 * 5 * 64));
  const Moments kernel(Initialize({3, 5, 32, 64}, "glorot {}"));
  EXPECT_NEAR(kernel.max, limit, limit * 0.001);
  EXPECT_LE(kernel.max, limit);
}

TEST(InitializerTest, FansOfAVectorAreItsLength) {
  const float limit = std::sqrt(6.0f / (5000 + 5000));
  const Moments vector(Initialize({5000}, "glorot {}"));
  EXPECT_NEAR(vector.max, limit, limit * 0.002);
  EXPECT_LE(vector.max, limit);
}

TEST(InitializerTest, DependsOnSeedAndNameAlone) {
  for (const char* kind : {"uniform { max: 1 }", "normal { stddev: 1 }", "truncated_normal { stddev: 1 }"}) {
    const auto values = Initialize(Variable("a", {10, 10}, kind), 1);
    EXPECT_EQ(values, Initialize(Variable("a", {10, 10}, kind), 1));
    EXPECT_EQ(values, Initialize(Variable("a", {100}, kind), 1));
    EXPECT_NE(values, Initialize(Variable("b", {10, 10}, kind), 1));
    EXPECT_NE(values, Initialize(Variable("a", {10, 10}, kind), 2));
  }
}

// These bits are part of a run's definition: any change makes all published hashes of weights obsolete.
TEST(InitializerTest, BitsAreTheSameInEveryRelease) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"uniform { min: -0.05 max: 0.05 }", 0xcfe091705bbd3bb7},
      {"normal { stddev: 0.1 }", 0x88f7fda37136c059},
      {"truncated_normal { mean: 1 stddev: 0.1 }", 0x52fd30350c6dc4aa},
      {"glorot {}", 0x28881676de9027ef},
      {"glorot { normal: true }", 0xb18e09809a39f892},
      {"he {}", 0x992d7ebb605b7154},
      {"he { normal: true }", 0x18f9ee6ae49f71e4},
  };
  for (const auto& [initializer, expected] : cases) {
    const auto values = Initialize({784, 13}, initializer);
    const uint64_t hash =
        StableHash(absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
    EXPECT_EQ(hash, expected) << initializer << std::hex << " 0x" << hash;
  }
}

}  // namespace
}  // namespace lockstep
