#include "lockstep/kernels/rounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

// Returns every 1021st number, and NaN.
std::vector<float> Everywhere() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1021) {
    const auto word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof(value));
    x.push_back(value);
  }
  return x;
}

std::vector<uint16_t> Encoded(ShortFloat type, const std::vector<float>& x) {
  std::vector<uint16_t> numbers(x.size());
  EncodeShort(type, static_cast<int64_t>(x.size()), x.data(), numbers.data());
  return numbers;
}
const char* BytesOf(const std::vector<uint16_t>& numbers) { return reinterpret_cast<const char*>(numbers.data()); }

TEST(RoundingKernelTest, EveryTargetEncodesAlike) {
  const std::vector<float> x = Everywhere();
  for (const ShortFloat type : {ShortFloat::kBfloat16, ShortFloat::kHalf}) {
    ExpectSameBitsOnEachTarget([&] { return Encoded(type, x); });
  }
}

TEST(RoundingKernelTest, HalvesAgreeWithEigen) {
  std::vector<float> x = RandomFloats(1000, 1);
  x.insert(x.end(), {0.0f, -0.0f, 65504.0f, 1e-7f, -6e-8f, 2.5e-8f, std::numeric_limits<float>::infinity()});
  ForEachTarget([&] {
    const std::vector<uint16_t> numbers = Encoded(ShortFloat::kHalf, x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(numbers[i], Eigen::numext::bit_cast<uint16_t>(Eigen::half(x[i]))) << x[i];
    }
  });
}

TEST(RoundingKernelTest, EveryNumberOfSixteenBitsComesBack) {
  std::vector<uint16_t> numbers;
  for (uint32_t bits = 0; bits < 65536; ++bits) numbers.push_back(static_cast<uint16_t>(bits));
  for (const ShortFloat type : {ShortFloat::kBfloat16, ShortFloat::kHalf}) {
    ForEachTarget([&] {
      std::vector<float> x(numbers.size());
      DecodeShort(type, 65536, BytesOf(numbers), x.data());
      const std::vector<uint16_t> again = Encoded(type, x);
      RoundToShort(type, 65536, x.data());
      const std::vector<uint16_t> rounded = Encoded(type, x);
      for (size_t i = 0; i < numbers.size(); ++i) {
        if (std::isnan(x[i])) continue;
        ASSERT_EQ(again[i], numbers[i]);
        ASSERT_EQ(rounded[i], numbers[i]);
      }
    });
  }
}

TEST(RoundingKernelTest, AddsAtAnyAlignmentAndLength) {
  for (int64_t n = 1; n < 40; ++n) {
    const std::vector<float> x = RandomFloats(n, 1);
    const std::vector<float> y = RandomFloats(n, 2);
    std::vector<char> bytes(n * sizeof(float) + 3);
    std::memcpy(bytes.data() + 3, x.data(), n * sizeof(float));
    const std::vector<uint16_t> numbers = Encoded(ShortFloat::kBfloat16, x);
    std::vector<char> shorts(n * sizeof(uint16_t) + 1);
    std::memcpy(shorts.data() + 1, numbers.data(), n * sizeof(uint16_t));
    ForEachTarget([&] {
      ResultArray sum(n), short_sum(n);
      std::copy(y.begin(), y.end(), sum.data());
      std::copy(y.begin(), y.end(), short_sum.data());
      AddFloats(n, bytes.data() + 3, sum.data());
      DecodeAndAddShort(ShortFloat::kBfloat16, n, shorts.data() + 1, short_sum.data());
      std::vector<float> decoded(n);
      DecodeShort(ShortFloat::kBfloat16, n, shorts.data() + 1, decoded.data());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(sum.values()[i], y[i] + x[i]);
        ASSERT_EQ(short_sum.values()[i], y[i] + decoded[i]);
      }
      ASSERT_TRUE(sum.borders_intact() && short_sum.borders_intact());
    });
  }
}

TEST(RoundingKernelTest, FindsNonFiniteNumbersAnywhere) {
  ForEachTarget([] {
    for (const int64_t n : {1, 7, 16, 64, 65, 200}) {
      std::vector<float> x(n, std::numeric_limits<float>::max());
      EXPECT_TRUE(AllValuesFinite(n, x.data()));
      for (int64_t i = 0; i < n; ++i) {
        for (const float wrong : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
          const float before = x[i];
          x[i] = wrong;
          ASSERT_FALSE(AllValuesFinite(n, x.data())) << i << " of " << n;
          x[i] = before;
        }
      }
    }
    EXPECT_TRUE(AllValuesFinite(0, nullptr));
  });
}

// Returns a copy of the bytes of `numbers`, at a random alignment.
template <typename T>
const char* RandomBytes(RandomCase* c, const std::vector<T>& numbers) {
  const auto* const from = reinterpret_cast<const char*>(numbers.data());
  std::vector<char> bytes(from, from + numbers.size() * sizeof(T));
  const int64_t behind = c->Between(0, 3), before = c->Between(0, 3);
  bytes.insert(bytes.begin(), before, 0);
  bytes.insert(bytes.end(), behind, 0);
  return c->Input(bytes) + before;
}

TEST(RoundingKernelTest, TargetsAgreeOnRandomShapes) {
  const ShortFloat types[] = {ShortFloat::kBfloat16, ShortFloat::kHalf};
  ForEachRandomCase(1000, [&](RandomCase& c) {
    const ShortFloat type = c.OneOf(types);
    const int64_t n = c.Size(0, 300);
    const std::vector<float> x = c.Numbers(n), y = c.Numbers(n);
    const std::vector<uint16_t> shorts = c.Integers<uint16_t>(n);
    uint16_t* const encoded = c.Output<uint16_t>(n);
    EncodeShort(type, n, c.Input(x), encoded);
    float* const rounded = c.InOut(x);
    RoundToShort(type, n, rounded);
    float* const decoded = c.Output(n);
    DecodeShort(type, n, RandomBytes(&c, shorts), decoded);
    float* const decoded_sum = c.InOut(y);
    DecodeAndAddShort(type, n, RandomBytes(&c, shorts), decoded_sum);
    float* const sum = c.InOut(y);
    AddFloats(n, RandomBytes(&c, x), sum);
    const bool finite = AllValuesFinite(n, c.Input(x));
    ASSERT_EQ(finite, std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); }));
    for (int64_t i = 0; i < n; ++i) {
      float back;
      DecodeShort(type, 1, reinterpret_cast<const char*>(&encoded[i]), &back);
      ASSERT_EQ(encoded[i], Encoded(type, {x[i]})[0]) << i;
      ASSERT_PRED2(SameFloats, rounded[i], back) << i;
      DecodeShort(type, 1, reinterpret_cast<const char*>(&shorts[i]), &back);
      ASSERT_PRED2(SameFloats, decoded[i], back) << i;
      ASSERT_PRED2(SameFloats, decoded_sum[i], y[i] + decoded[i]) << i;
      ASSERT_PRED2(SameFloats, sum[i], y[i] + x[i]) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
