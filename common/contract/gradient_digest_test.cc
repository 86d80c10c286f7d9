#include "lockstep/common/contract/gradient_digest.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

std::vector<float> Floats(const char* bytes) {
  std::vector<float> floats(std::strlen(bytes) / sizeof(float));
  std::memcpy(floats.data(), bytes, floats.size() * sizeof(float));
  return floats;
}

// The expected values come from a bit-by-bit implementation, which yields the check value of CRC-64/XZ,
// 0x995dc9bbdf1939fa, for "123456789".
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

// Compares with the bit-by-bit implementation, for sizes that take several blocks.
TEST(GradientDigestTest, IsOneCrcOfAnyNumberOfValues) {
  for (const size_t size : {1, 2047, 2048, 2049, 10000}) {
    std::vector<float> values(size);
    for (size_t i = 0; i < size; ++i) values[i] = std::sin(static_cast<float>(i));
    std::vector<unsigned char> bytes(size * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    uint64_t crc = ~uint64_t{0};
    for (const unsigned char byte : bytes) {
      crc ^= byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xc96c5795d7870f42 : crc >> 1;
    }
    EXPECT_EQ(GradientDigest(values), ~crc) << size;
  }
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(GradientDigestTest, DistinguishesNaNsOnRequest) {
  std::vector<float> values(5000, 1.5f);
  EXPECT_EQ(GradientDigest(values, NaNs::kAsTheyAre), GradientDigest(values));
  values[4000] = -std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(GradientDigest(values, NaNs::kAsTheyAre), GradientDigest(values));
}

TEST(GradientDigestTest, KnowsOneNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const size_t at : {0, 1, 2500, 4999}) {
    std::vector<float> values(5000, 0.5f);
    values[at] = FromBits(0x7fc00000);
    const uint64_t digest = GradientDigest(values);
    for (const uint32_t bits : {0xffc00000u, 0x7f800001u, 0xffffffffu}) {
      values[at] = FromBits(bits);
      EXPECT_EQ(GradientDigest(values), digest) << at;
    }
    for (const float other : {0.5f, kInfinity, -kInfinity}) {
      values[at] = other;
      EXPECT_NE(GradientDigest(values), digest) << at;
    }
  }
  EXPECT_NE(GradientDigest({kInfinity}), GradientDigest({-kInfinity}));
}

}  // namespace
}  // namespace lockstep
