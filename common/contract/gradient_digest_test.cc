#include "lockstep/common/contract/gradient_digest.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

std::vector<float> Floats(const char* bytes) {
  std::vector<float> floats(std::strlen(bytes) / sizeof(float));
  std::memcpy(floats.data(), bytes, floats.size() * sizeof(float));
  return floats;
}

// From a bit by bit implementation that gives the check value of CRC-64/XZ, 0x995dc9bbdf1939fa for "123456789".
TEST(GradientDigestTest, IsTheCrcOfXz) {
  EXPECT_EQ(GradientDigest({}), 0u);
  EXPECT_EQ(GradientDigest(Floats("12345678")), 0x5c8b80482bac7809u);
}

TEST(GradientDigestTest, SeesOneBitAnywhere) {
  std::vector<float> values(1000, 0.5f);
  const uint64_t whole = GradientDigest(values);
  for (size_t i = 0; i < values.size(); i += 37) {
    const float value = values[i];
    values[i] = std::nextafter(value, 1.0f);
    EXPECT_NE(GradientDigest(values), whole) << i;
    values[i] = value;
  }
  EXPECT_EQ(GradientDigest(values), whole);
}

TEST(GradientDigestTest, SeesTheSignOfAZeroAndTheOrder) {
  EXPECT_NE(GradientDigest({0.0f}), GradientDigest({-0.0f}));
  EXPECT_NE(GradientDigest({1.0f, 2.0f}), GradientDigest({2.0f, 1.0f}));
}

TEST(GradientDigestTest, KnowsOneNaNOnceTheyAreUnified) {
  std::vector<float> a = {1, std::nanf("1"), 2}, b = {1, -std::nanf("5"), 2};
  ASSERT_NE(GradientDigest(a), GradientDigest(b));
  UnifyNaNs(absl::MakeSpan(a));
  UnifyNaNs(absl::MakeSpan(b));
  EXPECT_EQ(GradientDigest(a), GradientDigest(b));
  EXPECT_TRUE(std::isnan(a[1]));
  EXPECT_EQ(a[2], 2);
}

}  // namespace
}  // namespace lockstep
