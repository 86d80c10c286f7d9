#include "lockstep/worker/nn/layers/concat.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kConfig[] = "name: 'x' input: 'a' input: 'b' input: 'c' concat {}";

void ExpectJoined(int64_t rows, const std::vector<int64_t>& columns, int64_t batch, int threads) {
  std::vector<Shape> shapes;
  int64_t width = 0;
  for (const int64_t c : columns) {
    shapes.push_back(Shape{rows, c});
    width += c;
  }
  LayerRunner runner(MakeConcat, kConfig, shapes, {batch, threads});
  EXPECT_EQ(runner.op().output_shape(), (Shape{rows, width}));
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  const std::vector<float> weights = RandomFloats(batch * rows * width, 5);
  runner.Backward(weights);
  int64_t at = 0;
  for (int64_t row = 0; row < batch * rows; ++row) {
    for (size_t i = 0; i < columns.size(); ++i) {
      for (int64_t c = 0; c < columns[i]; ++c, ++at) {
        ASSERT_EQ(runner.output()[at], runner.input(static_cast<int>(i))[row * columns[i] + c]);
        ASSERT_EQ(runner.input_gradient(static_cast<int>(i))[row * columns[i] + c], weights[at]);
      }
    }
  }
  EXPECT_EQ(runner.violations(), "");
}

TEST(ConcatTest, JoinsTheLastDimension) {
  ExpectJoined(3, {2, 5, 1}, 2, 1);
  ExpectJoined(1, {4, 4}, 1, 1);
  ExpectJoined(5000, {3, 8}, 3, 3);
}

TEST(ConcatTest, DoesNotWriteAnUnwantedGradient) {
  LayerRunner runner(MakeConcat, kConfig, {Shape{2}, Shape{3}}, {});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  runner.Backward(RandomFloats(5, 1), LayerRunner::InputGradients::kNone);
  for (const float x : runner.input_gradient(1)) EXPECT_TRUE(std::isnan(x));
}

TEST(ConcatTest, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(std::string(LayerStatus(MakeConcat, kConfig, {Shape{2, 3}, Shape{4, 3}}).message()),
              HasSubstr("its inputs 'a' and 'b' have shapes [2,3] and [4,3]"));
  EXPECT_THAT(std::string(LayerStatus(MakeConcat, kConfig, {Shape{3}, Shape{1, 3}}).message()), HasSubstr("shapes"));
  EXPECT_THAT(std::string(LayerStatus(MakeConcat, kConfig, {Shape{3}}).message()), HasSubstr("2 or more"));
}

}  // namespace
}  // namespace lockstep
