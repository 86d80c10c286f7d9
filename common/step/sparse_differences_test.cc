#include "lockstep/common/step/sparse_differences.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

struct Difference {
  uint16_t index;
  float value;
};

std::vector<Difference> Read(const std::string& bytes) {
  std::vector<Difference> out(bytes.size() / kDifferenceBytes);
  for (size_t i = 0; i < out.size(); ++i) {
    std::memcpy(&out[i].index, bytes.data() + i * 2, 2);
    std::memcpy(&out[i].value, bytes.data() + out.size() * 2 + i * 4, 4);
  }
  return out;
}

std::vector<int> IndexesOf(const std::string& bytes) {
  std::vector<int> out;
  for (const Difference& difference : Read(bytes)) out.push_back(difference.index);
  return out;
}

std::string Encode(double fraction, const std::vector<float>& gradient) {
  const std::vector<float> zeros(gradient.size());
  return DifferenceEncoder(fraction).Encode(gradient.data(), zeros.data(), static_cast<int64_t>(gradient.size()));
}

TEST(SparseDifferencesTest, TheBytesAreTheseForEver) {
  EXPECT_EQ(absl::BytesToHexString(Encode(0.5, {0.5f, -2, 0.25f, 1})),
            "01000300"
            "000000c0"
            "0000803f");
}

TEST(SparseDifferencesTest, KeepsTheLargestAndTheFirstOfEquals) {
  EXPECT_EQ(IndexesOf(Encode(0.5, {1, -4, 3, -2, 0.5f, 5})), (std::vector<int>{1, 2, 5}));
  EXPECT_EQ(IndexesOf(Encode(0.5, {2, -2, 2, 2, -2, 2})), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(IndexesOf(Encode(0.5, {1, 2, -2, 2, 9, 1})), (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(IndexesOf(Encode(0.5, {1, 1.03f, 1, 1})), (std::vector<int>{0, 1})) << "both in one bin of the histogram";
}

TEST(SparseDifferencesTest, KeepsAtLeastOneAndNeverAZero) {
  EXPECT_EQ(IndexesOf(Encode(1e-9, {1, 2, 3})), (std::vector<int>{2}));
  EXPECT_EQ(IndexesOf(Encode(1, {0, 2, -0.0f, 1})), (std::vector<int>{1, 3}));
  EXPECT_TRUE(Encode(1, {0, -0.0f}).empty());
  EXPECT_EQ(IndexesOf(Encode(0.34, {1, 2, 3})), (std::vector<int>{1, 2})) << "rounded up";
}

TEST(SparseDifferencesTest, ANaNIsLargerThanEverything) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(IndexesOf(Encode(0.25, {infinity, 1, nan, 2})), (std::vector<int>{2}));
  EXPECT_EQ(IndexesOf(Encode(0.5, {-infinity, 1, nan, 2})), (std::vector<int>{0, 2}));
}

// Compares the result with that of sorting.
TEST(SparseDifferencesTest, SelectsLikeSorting) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto elements = static_cast<int64_t>(1 + Philox(seed, 1).At(0)[0] % (seed % 3 == 0 ? 65536 : 300));
    std::vector<float> gradient(elements), estimate(elements);
    Philox(seed, 2).FillNormal(absl::MakeSpan(gradient));
    Philox(seed, 3).FillNormal(absl::MakeSpan(estimate));
    // Create many ties and many zeros.
    if (seed % 2 == 0) {
      for (float& value : gradient) value = std::round(value * 2) / 2;
      for (float& value : estimate) value = std::round(value * 2) / 2;
    }
    for (const double fraction : {0.01, 0.1, 0.5, 1.0}) {
      std::vector<int> order(elements);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return std::abs(gradient[a] - estimate[a]) > std::abs(gradient[b] - estimate[b]);
      });
      order.resize(static_cast<size_t>(std::ceil(fraction * static_cast<double>(elements))));
      order.erase(std::remove_if(order.begin(), order.end(), [&](int i) { return gradient[i] == estimate[i]; }),
                  order.end());
      std::sort(order.begin(), order.end());
      const std::string bytes = DifferenceEncoder(fraction).Encode(gradient.data(), estimate.data(), elements);
      ASSERT_EQ(IndexesOf(bytes), order) << "seed " << seed << ", fraction " << fraction;
      EXPECT_TRUE(CheckDifferences(bytes, elements).ok());
      std::vector<float> next = estimate;
      AddDifferences(bytes, next.data());
      for (const Difference& difference : Read(bytes)) {
        const int i = difference.index;
        EXPECT_EQ(difference.value, gradient[i] - estimate[i]);
        EXPECT_EQ(next[i], estimate[i] + difference.value);
        next[i] = estimate[i];
      }
      EXPECT_EQ(next, estimate) << "nothing else changes";
    }
  }
}

TEST(SparseDifferencesTest, MalformedBytesAreNamed) {
  const std::string good = Encode(1, {1, 2, 3});
  EXPECT_TRUE(CheckDifferences(good, 3).ok());
  EXPECT_TRUE(CheckDifferences("", 1).ok());
  EXPECT_EQ(CheckDifferences(good, 2).message(), "index 2 is not below the 2 elements");
  EXPECT_EQ(CheckDifferences(good.substr(1), 3).message(), "17 bytes are not a whole number of differences of 6 bytes");
  std::string twice = good;
  twice[2] = 0;
  EXPECT_EQ(CheckDifferences(twice, 3).message(), "index 0 follows index 0");
  EXPECT_EQ(CheckDifferences(good, 3).code(), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace lockstep
