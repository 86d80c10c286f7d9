#include "lockstep/kernels/normalize.h"

#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

std::vector<uint8_t> Bytes(int64_t size) {
  std::vector<uint8_t> bytes(size);
  for (int64_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  return bytes;
}

void ExpectQuotients(const ByteNormalization& normalization) {
  for (const int64_t size : {1, 7, 8, 15, 16, 17, 256, 784}) {
    const std::vector<uint8_t> bytes = Bytes(size);
    ForEachTarget([&] {
      ResultArray out(size);
      NormalizeBytes(normalization, size, bytes.data(), out.data());
      for (int64_t i = 0; i < size; ++i) {
        const float expected = (static_cast<float>(bytes[i]) / 255.0f - normalization.mean) / normalization.stddev;
        ASSERT_EQ(out.values()[i], expected) << static_cast<int>(bytes[i]);
      }
      EXPECT_TRUE(out.borders_intact());
    });
  }
}

TEST(NormalizeTest, BytesBecomeTheRoundedQuotients) {
  ExpectQuotients({0.0f, 1.0f});
  for (const float stddev : {0.353f, 0.3081f, 0.5f, 1.0f, 3.7f, 1e-3f, 1e20f}) {
    ExpectQuotients({0.286f, stddev});
    ByteNormalization divides(0.286f, stddev);
    divides.multiplies = false;
    ExpectQuotients(divides);
  }
}

TEST(NormalizeTest, UnsuitableReciprocalsDivide) {
  // Its reciprocal is infinite.
  const ByteNormalization tiny(0.0f, 1e-39f);
  EXPECT_FALSE(tiny.multiplies);
  ExpectQuotients(tiny);
}

TEST(NormalizeTest, FloatsBecomeTheRoundedQuotients) {
  for (const int64_t size : {1, 7, 16, 33}) {
    const std::vector<float> x = RandomFloats(size, 1);
    ForEachTarget([&] {
      std::vector<float> y = x;
      NormalizeFloats(0.286f, 0.353f, size, y.data());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(y[i], (x[i] - 0.286f) / 0.353f) << i;
    });
  }
}

TEST(NormalizeTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(1000, [](RandomCase& c) {
    const int64_t size = c.Size(0, 800);
    const float about[] = {1, 1e-3f, 1e-39f, 1e20f};
    const float mean = c.OneIn(4) ? 0 : c.FiniteNumbers(1)[0];
    const float stddev = c.OneIn(4) ? 1 : c.Positive(c.OneOf(about));
    const std::vector<uint8_t> bytes = c.Integers<uint8_t>(size);
    const std::vector<float> values = c.Numbers(size);
    float* const of_bytes = c.Output(size);
    NormalizeBytes({mean, stddev}, size, c.Input(bytes), of_bytes);
    float* const of_values = c.InOut(values);
    NormalizeFloats(mean, stddev, size, of_values);
    for (int64_t i = 0; i < size; ++i) {
      ASSERT_PRED2(SameFloats, of_bytes[i], (static_cast<float>(bytes[i]) / 255.0f - mean) / stddev) << i;
      ASSERT_PRED2(SameFloats, of_values[i], (values[i] - mean) / stddev) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
