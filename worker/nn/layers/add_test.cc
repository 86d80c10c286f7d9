#include "lockstep/worker/nn/layers/add.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kConfig[] = "name: 'x' input: 'a' input: 'b' input: 'c' add {}";

void ExpectSum(int64_t inputs, int64_t batch, int64_t size, int threads = 1) {
  LayerRunner runner(MakeAdd, kConfig, std::vector<Shape>(inputs, Shape{size}), {batch, threads});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  const std::vector<float> weights = RandomFloats(batch * size, 5);
  runner.Backward(weights);
  for (int64_t i = 0; i < batch * size; ++i) {
    float sum = runner.input(0)[i];
    for (int64_t k = 1; k < inputs; ++k) sum += runner.input(k)[i];
    ASSERT_EQ(runner.output()[i], sum) << i << " of " << batch * size;
    for (int64_t k = 0; k < inputs; ++k) ASSERT_EQ(runner.input_gradient(k)[i], weights[i]) << i;
  }
  EXPECT_EQ(runner.violations(), "");
}

TEST(AddTest, SumsAnyNumberOfInputsInTheirOrder) {
  for (const int64_t inputs : {2, 3, 5}) ExpectSum(inputs, 3, 13);
}

TEST(AddTest, ArraysMayEndAnywhereInAVector) {
  for (int64_t size = 1; size <= 17; ++size) ExpectSum(2, 1, size);
}

TEST(AddTest, SeveralBlocksBeyond16384Elements) {
  ExpectSum(3, 1, 16384);
  ExpectSum(3, 5, 10001, 3);
}

TEST(AddTest, TheFirstGradientMayBeTheOutputs) {
  LayerRunner runner(MakeAdd, kConfig, {Shape{11}, Shape{11}}, {2});
  const std::vector<float> weights = RandomFloats(22, 5);
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  runner.Backward(weights, LayerRunner::InputGradients::kInPlace);
  for (const int i : {0, 1}) EXPECT_EQ(FirstDifference(runner.input_gradient(i), ToDoubles(weights), 0), "") << i;
}

TEST(AddTest, DoesNotWriteAnUnwantedGradient) {
  LayerRunner runner(MakeAdd, kConfig, {Shape{11}, Shape{11}}, {});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  runner.Backward(RandomFloats(11, 5), LayerRunner::InputGradients::kNone);
  for (const float x : runner.input_gradient(1)) EXPECT_TRUE(std::isnan(x));
}

TEST(AddTest, ANotANumberStays) {
  LayerRunner runner(MakeAdd, kConfig, {Shape{11}, Shape{11}}, {});
  runner.input(0)[2] = std::numeric_limits<float>::quiet_NaN();
  runner.input(1)[9] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (int i = 0; i < 11; ++i) EXPECT_EQ(std::isnan(runner.output()[i]), i == 2 || i == 9) << i;
}

TEST(AddTest, RefusesOneInputAndDifferentShapes) {
  EXPECT_THAT(LayerStatus(MakeAdd, kConfig, {Shape{3}}).message(), HasSubstr("has 1"));
  EXPECT_THAT(LayerStatus(MakeAdd, kConfig, {Shape{3}, Shape{3}, Shape{4}}).message(),
              HasSubstr("'a' and 'c' have shapes [3] and [4]"));
  EXPECT_THAT(LayerStatus(MakeAdd, kConfig, {Shape{6}, Shape{2, 3}}).message(),
              HasSubstr("'a' and 'b' have shapes [6] and [2,3]"));
}

}  // namespace
}  // namespace lockstep
