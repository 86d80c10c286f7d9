#include "lockstep/common/tensor/rounding.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

uint16_t Encode(v1::DataType type, float value) {
  uint16_t out = 0;
  Encode16(type, 1, &value, &out);
  return out;
}

float Decode(v1::DataType type, uint16_t number) {
  float out = 0;
  Decode16(type, 1, reinterpret_cast<const char*>(&number), &out);
  return out;
}

struct Type {
  v1::DataType type;
  int mantissa_bits;
  int exponent_bits;
  uint16_t infinity;
  uint16_t nan;

  // Returns a finite number's value, as IEEE 754 defines it.
  float ValueOf(uint16_t number) const {
    const int mantissa = number & ((1 << mantissa_bits) - 1);
    const int exponent = (number >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double magnitude = exponent == 0
                                 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                 : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return static_cast<float>((number & 0x8000) != 0 ? -magnitude : magnitude);
  }
};

class RoundingTest : public ::testing::TestWithParam<Type> {};

TEST_P(RoundingTest, RoundTripsEveryNumberByDefinition) {
  const Type& t = GetParam();
  for (uint32_t number = 0; number < 0x10000; ++number) {
    const uint16_t magnitude = number & 0x7fff;
    const float value = Decode(t.type, static_cast<uint16_t>(number));
    if (magnitude > t.infinity) {
      EXPECT_TRUE(std::isnan(value)) << number;
      EXPECT_EQ(Encode(t.type, value), t.nan) << number;
      continue;
    }
    const float expected = magnitude == t.infinity ? std::copysign(kInfinity, number >= 0x8000 ? -1.0f : 1.0f)
                                                   : t.ValueOf(static_cast<uint16_t>(number));
    EXPECT_EQ(BitsOf(value), BitsOf(expected)) << number;
    EXPECT_EQ(Encode(t.type, value), number);
  }
}

// Tests every boundary between neighboring numbers: the floats just below, at and just above the midpoint.
TEST_P(RoundingTest, RoundsToTheNearestAndTiesToEven) {
  const Type& t = GetParam();
  for (uint16_t lower = 0; lower + 1 < t.infinity; ++lower) {
    const uint16_t upper = lower + 1;
    const float middle = static_cast<float>((static_cast<double>(t.ValueOf(lower)) + t.ValueOf(upper)) / 2);
    const uint16_t even = lower % 2 == 0 ? lower : upper;
    for (const int sign : {1, -1}) {
      const uint16_t bit = sign < 0 ? 0x8000 : 0;
      EXPECT_EQ(Encode(t.type, sign * middle), even | bit) << lower;
      EXPECT_EQ(Encode(t.type, sign * std::nextafter(middle, 0.0f)), lower | bit) << lower;
      EXPECT_EQ(Encode(t.type, sign * std::nextafter(middle, kInfinity)), upper | bit) << lower;
    }
  }
}

TEST_P(RoundingTest, FiniteNumbersStayFinite) {
  const Type& t = GetParam();
  const uint16_t largest = t.infinity - 1;
  for (const float value : {t.ValueOf(largest), std::nextafter(t.ValueOf(largest), kInfinity), 3.4e38f,
                            std::numeric_limits<float>::max()}) {
    EXPECT_EQ(Encode(t.type, value), largest) << value;
    EXPECT_EQ(Encode(t.type, -value), largest | 0x8000) << value;
  }
  EXPECT_EQ(Encode(t.type, kInfinity), t.infinity);
  EXPECT_EQ(Encode(t.type, -kInfinity), t.infinity | 0x8000);
  EXPECT_EQ(Encode(t.type, FromBits(0xffc12345)), t.nan);
  EXPECT_EQ(Encode(t.type, FromBits(0x7f800001)), t.nan);
  EXPECT_EQ(Encode(t.type, -0.0f), 0x8000);
  EXPECT_EQ(Encode(t.type, std::numeric_limits<float>::denorm_min()), 0);
}

TEST_P(RoundingTest, NeitherPositionNorAlignmentMatters) {
  const Type& t = GetParam();
  for (int64_t n = 0; n < 37; ++n) {
    std::vector<float> values(n), rounded(n), decoded(n), sums(n, 0.125f);
    for (int64_t i = 0; i < n; ++i) values[i] = FromBits(0x3f812345u * static_cast<uint32_t>(i + 1));
    rounded = values;
    RoundTo(t.type, n, rounded.data());
    std::vector<uint16_t> encoded(n);
    Encode16(t.type, n, values.data(), encoded.data());
    // The bytes end where the allocation ends, so that the sanitizer detects a read past them.
    std::vector<char> bytes(2 * n + 1);
    if (n > 0) std::memcpy(bytes.data() + 1, encoded.data(), 2 * n);
    Decode16(t.type, n, bytes.data() + 1, decoded.data());
    DecodeAndAdd16(t.type, n, bytes.data() + 1, sums.data());
    for (int64_t i = 0; i < n; ++i) {
      const float one = Decode(t.type, Encode(t.type, values[i]));
      EXPECT_EQ(BitsOf(rounded[i]), BitsOf(one));
      EXPECT_EQ(BitsOf(decoded[i]), BitsOf(one));
      EXPECT_EQ(BitsOf(sums[i]), BitsOf(0.125f + one));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoundingTest,
                         ::testing::Values(Type{v1::DT_BFLOAT16, 7, 8, 0x7f80, 0x7fc0},
                                           Type{v1::DT_HALF, 10, 5, 0x7c00, 0x7e00}),
                         [](const auto& info) { return info.param.type == v1::DT_HALF ? "Half" : "Bfloat16"; });

TEST(RoundingOfFloatsTest, ChangesNothing) {
  float value = 1.0000001f;
  RoundTo(v1::DT_FLOAT, 1, &value);
  EXPECT_EQ(value, 1.0000001f);
  EXPECT_TRUE(IsFloatType(v1::DT_FLOAT) && IsFloatType(v1::DT_BFLOAT16) && IsFloatType(v1::DT_HALF));
  EXPECT_FALSE(IsFloatType(v1::DT_DOUBLE) || IsFloatType(v1::DT_INVALID) || IsFloatType(static_cast<v1::DataType>(99)));
}

// Numbers that can be checked against public tables.
TEST(RoundingTableTest, GoldenNumbers) {
  const struct {
    float value;
    uint16_t bfloat16, half;
  } table[] = {{1, 0x3f80, 0x3c00},           {-2, 0xc000, 0xc000},         {0.1f, 0x3dcd, 0x2e66},
               {1.0f / 3, 0x3eab, 0x3555},    {65504, 0x4780, 0x7bff},      {65520, 0x4780, 0x7bff},
               {5.9604645e-8f, 0x3380, 1},    {2.9802322e-8f, 0x3300, 0},   {3.1415927f, 0x4049, 0x4248},
               {1.00390625f, 0x3f80, 0x3c04}, {1.01171875f, 0x3f82, 0x3c0c}};
  for (const auto& row : table) {
    EXPECT_EQ(Encode(v1::DT_BFLOAT16, row.value), row.bfloat16) << row.value;
    EXPECT_EQ(Encode(v1::DT_HALF, row.value), row.half) << row.value;
  }
}

}  // namespace
}  // namespace lockstep
