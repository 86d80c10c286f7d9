#include "lockstep/kernels/nn/dropout.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

constexpr uint8_t kUntouched = 0xA5;

std::vector<uint32_t> RandomBits(int64_t size) {
  std::vector<uint32_t> bits((size + 7) / 8 * 8);
  Philox(1, size).FillBits(0, absl::MakeSpan(bits));
  return bits;
}

class DropoutKernelTest : public testing::TestWithParam<float> {
 protected:
  DropoutRule rule() const { return {static_cast<int32_t>(GetParam() * (1 << 24)), 1 / (1 - GetParam())}; }
};

TEST_P(DropoutKernelTest, ElementsAreScaledOrZeroOnEveryTarget) {
  for (int64_t size = 0; size < 150; ++size) {
    const std::vector<uint32_t> bits = RandomBits(size);
    const std::vector<float> x = RandomFloats(size, 3);
    const int64_t bytes = (size + 7) / 8;
    ForEachTarget([&] {
      ResultArray y(size), dx(size);
      std::vector<uint8_t> kept(bytes + 4, kUntouched);
      DropElements(rule(), size, bits.data(), x.data(), kept.data(), y.data());
      DropoutGradient(rule().scale, size, kept.data(), x.data(), dx.data());
      for (int64_t i = 0; i < size; ++i) {
        const bool keeps = static_cast<int32_t>(bits[i] >> 8) >= rule().lowest_kept;
        const float expected = keeps ? x[i] * rule().scale : 0.0f;
        ASSERT_EQ((kept[i / 8] >> (i % 8) & 1) != 0, keeps) << i << " of " << size;
        ASSERT_EQ(std::memcmp(&y.values()[i], &expected, sizeof(expected)), 0) << i << " of " << size;
        ASSERT_EQ(std::memcmp(&dx.values()[i], &expected, sizeof(expected)), 0) << i << " of " << size;
      }
      for (int64_t i = bytes; i < bytes + 4; ++i) ASSERT_EQ(kept[i], kUntouched);
      ASSERT_TRUE(y.borders_intact());
      ASSERT_TRUE(dx.borders_intact());
    });
  }
}

TEST_P(DropoutKernelTest, EveryTargetMakesTheSameMask) {
  for (const int64_t size : {1, 12, 20, 25, 1001}) {
    const std::vector<uint32_t> bits = RandomBits(size);
    const std::vector<float> x = RandomFloats(size, 4);
    ExpectSameBitsOnEachTarget([&] {
      std::vector<uint8_t> kept((size + 7) / 8);
      std::vector<float> y(size);
      DropElements(rule(), size, bits.data(), x.data(), kept.data(), y.data());
      return std::vector<int>(kept.begin(), kept.end());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, DropoutKernelTest, testing::Values(0.0f, 0.1f, 0.5f, 0.9f));

TEST(DropoutKernelRandomTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(1000, [](RandomCase& c) {
    const int64_t size = c.Size(0, 400), bytes = (size + 7) / 8;
    const DropoutRule rule{static_cast<int32_t>(c.Between(0, 1 << 24)), c.Positive(1)};
    const std::vector<uint32_t> bits = c.Integers<uint32_t>(bytes * 8);
    const std::vector<float> x = c.Numbers(size);
    uint8_t* const kept = c.Output<uint8_t>(bytes);
    float* const y = c.Output(size);
    DropElements(rule, size, c.Input(bits), c.Input(x), kept, y);
    const bool in_place = c.OneIn(2);
    float* const dx = in_place ? c.InOut(x) : c.Output(size);
    DropoutGradient(rule.scale, size, c.Input(std::vector<uint8_t>(kept, kept + bytes)), in_place ? dx : c.Input(x),
                    dx);
    for (int64_t i = 0; i < size; ++i) {
      const bool keeps = static_cast<int32_t>(bits[i] >> 8) >= rule.lowest_kept;
      ASSERT_EQ((kept[i / 8] >> (i % 8) & 1) != 0, keeps) << i;
      ASSERT_PRED2(SameFloats, y[i], keeps ? x[i] * rule.scale : 0.0f) << i;
      ASSERT_PRED2(SameFloats, dx[i], y[i]) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
