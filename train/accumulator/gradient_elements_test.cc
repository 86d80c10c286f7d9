#include "lockstep/train/accumulator/gradient_elements.h"

#include <array>

#include "Eigen/Core"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::array<T, 2> SumOf(v1::DataType dtype, std::array<T, 2> from, std::array<T, 2> to) {
  AddElements(dtype, 2, reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(to.data()));
  return to;
}

template <typename T>
std::array<T, 2> QuotientOf(v1::DataType dtype, std::array<T, 2> elements, int64_t divisor) {
  DivideElements(dtype, 2, divisor, reinterpret_cast<char*>(elements.data()));
  return elements;
}

TEST(GradientElementsTest, AddsInEachType) {
  EXPECT_THAT(SumOf<float>(v1::DT_FLOAT, {1.5f, -2.0f}, {0.25f, 2.0f}), ElementsAre(1.75f, 0.0f));
  EXPECT_THAT(SumOf<double>(v1::DT_DOUBLE, {1e-12, 3.0}, {1.0, 4.0}), ElementsAre(1.0 + 1e-12, 7.0));
  // 2048 + 1 is not representable in float16; the tie rounds to even.
  EXPECT_THAT(SumOf<Eigen::half>(v1::DT_HALF, {Eigen::half(1.0f), Eigen::half(3.0f)},
                                 {Eigen::half(2048.0f), Eigen::half(0.5f)}),
              ElementsAre(Eigen::half(2048.0f), Eigen::half(3.5f)));
}

TEST(GradientElementsTest, DividesInEachType) {
  EXPECT_THAT(QuotientOf<float>(v1::DT_FLOAT, {1.0f, 9.0f}, 3), ElementsAre(1.0f / 3.0f, 3.0f));
  EXPECT_THAT(QuotientOf<double>(v1::DT_DOUBLE, {1.0, 9.0}, 3), ElementsAre(1.0 / 3.0, 3.0));
  EXPECT_THAT(QuotientOf<Eigen::half>(v1::DT_HALF, {Eigen::half(1.0f), Eigen::half(9.0f)}, 3),
              ElementsAre(Eigen::half(1.0f / 3.0f), Eigen::half(3.0f)));
}

TEST(GradientElementsTest, GradientsHaveThreeTypes) {
  for (const v1::DataType dtype : {v1::DT_HALF, v1::DT_FLOAT, v1::DT_DOUBLE}) EXPECT_TRUE(IsGradientType(dtype));
  for (const v1::DataType dtype : {v1::DT_INVALID, v1::DT_INT64, v1::DT_BFLOAT16}) EXPECT_FALSE(IsGradientType(dtype));
}

}  // namespace
}  // namespace lockstep::train
