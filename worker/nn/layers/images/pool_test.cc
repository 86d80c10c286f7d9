#include "lockstep/worker/nn/layers/images/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Dimension {
  int64_t input = 1;
  int64_t window = 1;
  int64_t stride = 1;
  bool same = false;

  int64_t output() const { return same ? (input + stride - 1) / stride : (input - window) / stride + 1; }
  int64_t padding() const { return same ? std::max<int64_t>(0, (output() - 1) * stride + window - input) / 2 : 0; }
};

struct Case {
  Dimension y;
  Dimension x;
  int64_t channels = 1;
  int64_t batch = 1;

  std::string Config(bool maximum) const {
    return absl::StrCat("name: 'x' ", maximum ? "max_pool" : "average_pool", " { window: ", y.window,
                        " window: ", x.window, " strides: ", y.stride, " strides: ", x.stride,
                        " padding: ", y.same ? "SAME" : "VALID", " }");
  }
};

std::vector<double> Reference(const Case& c, bool maximum, const std::vector<double>& input) {
  std::vector<double> result;
  for (int64_t i = 0; i < c.batch * c.y.output() * c.x.output() * c.channels; ++i) {
    const int64_t pixel = i / c.channels;
    const int64_t image = pixel / (c.y.output() * c.x.output());
    const int64_t top = pixel / c.x.output() % c.y.output() * c.y.stride - c.y.padding();
    const int64_t left = pixel % c.x.output() * c.x.stride - c.x.padding();
    std::vector<double> window;
    for (int64_t y = std::max<int64_t>(0, top); y < std::min(c.y.input, top + c.y.window); ++y) {
      for (int64_t x = std::max<int64_t>(0, left); x < std::min(c.x.input, left + c.x.window); ++x) {
        window.push_back(input[((image * c.y.input + y) * c.x.input + x) * c.channels + i % c.channels]);
      }
    }
    double sum = 0;
    for (const double x : window) sum += x;
    result.push_back(maximum ? *std::max_element(window.begin(), window.end())
                             : sum / static_cast<double>(window.size()));
  }
  return result;
}

void ExpectPool(const Case& c, int threads = 1) {
  for (const bool maximum : {false, true}) {
    LayerRunner runner(maximum ? MakeMaxPool : MakeAveragePool, c.Config(maximum),
                       {Shape{c.y.input, c.x.input, c.channels}}, {c.batch, threads});
    EXPECT_EQ(CompareWithReference(
                  &runner, {}, [&](const auto& arguments) { return Reference(c, maximum, arguments[0]); }, 1e-6),
              "")
        << c.Config(maximum) << " over " << c.y.input << " x " << c.x.input << " x " << c.channels;
  }
}

TEST(PoolTest, WindowsMayTouchOverlapAndLeaveGaps) {
  for (const bool same : {false, true}) {
    for (const int64_t window : {1, 2, 3}) {
      for (const int64_t stride : {1, 2, 3, 4}) {
        ExpectPool({{6, window, stride, same}, {7, window, stride, same}, 3, 2});
      }
    }
  }
}

TEST(PoolTest, HeightAndWidthHaveNumbersOfTheirOwn) {
  for (const bool same : {false, true}) {
    ExpectPool({{5, 2, 2, same}, {8, 3, 1, same}, 2, 2});
    ExpectPool({{8, 3, 1, same}, {5, 2, 2, same}, 2, 2});
    ExpectPool({{4, 1, 3, same}, {6, 6, 6, same}, 2, 2});
    ExpectPool({{4, 2, 2, same}, {6, 2, 3, same}, 2, 2});
  }
  ExpectPool({{2, 5, 1, true}, {3, 4, 2, true}, 1, 1});
}

TEST(PoolTest, ChannelsMayEndAnywhereInAVector) {
  for (const int64_t channels : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 43}) {
    ExpectPool({{3, 2, 2, true}, {3, 2, 1, true}, channels, 2});
  }
}

TEST(PoolTest, ThreadsShareTheImages) { ExpectPool({{5, 2, 2, true}, {5, 3, 2, true}, 9, 8}, 3); }

// A window over [1, positions, 1].
struct OneWindow {
  OneWindow(LayerFactory factory, const std::string& kind, const std::vector<float>& input)
      : runner(factory, absl::StrCat("name: 'x' ", kind, " { window: 1 window: ", input.size(), " }"),
               {Shape{1, static_cast<int64_t>(input.size()), 1}}, {}) {
    std::copy(input.begin(), input.end(), runner.input().begin());
    EXPECT_EQ(runner.Forward(), absl::OkStatus());
    runner.Backward({5});
  }
  LayerRunner runner;
};

TEST(PoolTest, TheFirstEqualElementGetsTheGradient) {
  const OneWindow pool(MakeMaxPool, "max_pool", {1, 3, 3, 2});
  EXPECT_THAT(pool.runner.output(), ElementsAre(3));
  EXPECT_THAT(pool.runner.input_gradient(), ElementsAre(0, 5, 0, 0));
}

TEST(PoolTest, FindsTheMaximumOfNegativeElements) {
  const OneWindow pool(MakeMaxPool, "max_pool", {-3, -1, -2});
  EXPECT_THAT(pool.runner.output(), ElementsAre(-1));
  EXPECT_THAT(pool.runner.input_gradient(), ElementsAre(0, 5, 0));
}

TEST(PoolTest, ANotANumberIsLargerThanEverything) {
  for (const int at : {0, 1, 2}) {
    std::vector<float> input = {1, 7, 2};
    input[at] = kNan;
    const OneWindow pool(MakeMaxPool, "max_pool", input);
    EXPECT_TRUE(std::isnan(pool.runner.output()[0])) << at;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(pool.runner.input_gradient()[i], i == at ? 5 : 0) << at;
    EXPECT_TRUE(std::isnan(OneWindow(MakeAveragePool, "average_pool", input).runner.output()[0]));
  }
}

TEST(PoolTest, WithoutStridesWindowsTouch) {
  LayerRunner runner(MakeMaxPool, "name: 'x' max_pool { window: 2 window: 3 }", {Shape{6, 6, 1}}, {});
  EXPECT_EQ(runner.op().output_shape(), (Shape{3, 2, 1}));
}

TEST(PoolTest, EvaluationGivesTheBitsOfTraining) {
  LayerRunner runner(MakeMaxPool, "name: 'x' max_pool { window: 2 }", {Shape{5, 5, 3}}, {2});
  ASSERT_EQ(runner.Forward(false), absl::OkStatus());
  const std::vector<float> evaluation(runner.output().begin(), runner.output().end());
  ASSERT_EQ(runner.Forward(true), absl::OkStatus());
  EXPECT_EQ(FirstDifference(runner.output(), ToDoubles(evaluation), 0), "");
}

TEST(PoolTest, DoesNotComputeAnUnwantedGradient) {
  for (const bool maximum : {false, true}) {
    LayerRunner runner(maximum ? MakeMaxPool : MakeAveragePool, Case{{4, 2, 2}, {4, 2, 2}}.Config(maximum),
                       {Shape{4, 4, 1}}, {});
    ASSERT_EQ(runner.Forward(), absl::OkStatus());
    runner.Backward(RandomFloats(4, 1), LayerRunner::InputGradients::kNone);
    for (const float x : runner.input_gradient()) EXPECT_TRUE(std::isnan(x));
  }
}

TEST(PoolTest, RefusesOtherInputs) {
  for (const LayerFactory factory : {MakeMaxPool, MakeAveragePool}) {
    EXPECT_THAT(LayerStatus(factory, "name: 'x'", {Shape{5}}).message(), HasSubstr("not shape [5]"));
    EXPECT_THAT(LayerStatus(factory, "name: 'x'", {Shape{5, 5}}).message(), HasSubstr("the window has 0 numbers"));
  }
}

}  // namespace
}  // namespace lockstep
