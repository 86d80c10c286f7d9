#include "lockstep/kernels/images/depthwise.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

SlidingWindow Slide(int64_t input, int64_t size, int64_t stride, int64_t padding) {
  return {input, size, stride, padding, (input + 2 * padding - size) / stride + 1};
}

std::vector<WindowGeometry> Geometries(int64_t channels) {
  return {{Slide(6, 3, 1, 1), Slide(5, 3, 1, 1), channels},
          {Slide(7, 3, 2, 1), Slide(6, 2, 2, 0), channels},
          {Slide(2, 5, 1, 2), Slide(3, 1, 2, 0), channels}};
}

struct Sizes {
  explicit Sizes(const WindowGeometry& g)
      : input(g.y.input * g.x.input * g.channels),
        output(g.y.output * g.x.output * g.channels),
        kernel(g.y.size * g.x.size * g.channels) {}
  int64_t input, output, kernel;
};

// Calls body(index of x, index of w, index of y) for each product, in the order of the header's chains for y and dw.
template <class Body>
void ForEachProduct(const WindowGeometry& g, Body body) {
  for (int64_t oy = 0; oy < g.y.output; ++oy) {
    for (int64_t ox = 0; ox < g.x.output; ++ox) {
      for (int64_t ky = 0; ky < g.y.size; ++ky) {
        for (int64_t kx = 0; kx < g.x.size; ++kx) {
          const int64_t y = g.y.first(oy) + ky, x = g.x.first(ox) + kx;
          if (y < 0 || y >= g.y.input || x < 0 || x >= g.x.input) continue;
          for (int64_t c = 0; c < g.channels; ++c) {
            body((y * g.x.input + x) * g.channels + c, (ky * g.x.size + kx) * g.channels + c,
                 (oy * g.x.output + ox) * g.channels + c);
          }
        }
      }
    }
  }
}

constexpr int64_t kImages = 2;

TEST(DepthwiseKernelTest, EverySumIsTheDocumentedChain) {
  for (int64_t channels = 1; channels <= 70; channels += 1 + channels / 7) {
    for (const WindowGeometry& g : Geometries(channels)) {
      const Sizes sizes(g);
      const std::vector<float> x = RandomFloats(kImages * sizes.input, 1), w = RandomFloats(sizes.kernel, 2);
      const std::vector<float> bias = RandomFloats(channels, 3), dy = RandomFloats(kImages * sizes.output, 4);
      std::vector<float> y(sizes.output), dx(sizes.input), dw(sizes.kernel);
      for (int64_t i = 0; i < sizes.output; ++i) y[i] = bias[i % channels];
      ForEachProduct(g, [&](int64_t p, int64_t q, int64_t o) {
        y[o] = std::fma(x[p], w[q], y[o]);
        dx[p] = std::fma(dy[o], w[q], dx[p]);
      });
      for (int64_t i = 0; i < kImages; ++i) {
        ForEachProduct(g, [&](int64_t p, int64_t q, int64_t o) {
          dw[q] = std::fma(dy[i * sizes.output + o], x[i * sizes.input + p], dw[q]);
        });
      }
      ForEachTarget([&] {
        ResultArray y_result(sizes.output), dx_result(sizes.input), dw_result(sizes.kernel);
        DepthwiseImage(g, x.data(), w.data(), bias.data(), y_result.data());
        DepthwiseInputGradient(g, dy.data(), w.data(), dx_result.data());
        const int64_t places = g.y.size * g.x.size;
        DepthwiseKernelGradient(g, kImages, x.data(), dy.data(), places / 2, places, dw_result.data());
        DepthwiseKernelGradient(g, kImages, x.data(), dy.data(), 0, places / 2, dw_result.data());
        ASSERT_EQ(FirstDifference(y_result.values(), ToDoubles(y), 0), "") << channels;
        ASSERT_EQ(FirstDifference(dx_result.values(), ToDoubles(dx), 0), "") << channels;
        ASSERT_EQ(FirstDifference(dw_result.values(), ToDoubles(dw), 0), "") << channels;
        ASSERT_TRUE(y_result.borders_intact() && dx_result.borders_intact() && dw_result.borders_intact());
      });
    }
  }
}

SlidingWindow RandomWindow(RandomCase* random_case) {
  SlidingWindow w;
  w.size = random_case->Between(1, 4);
  w.stride = random_case->Between(1, 3);
  w.padding = random_case->Between(0, w.size - 1);
  w.input = random_case->Between(std::max<int64_t>(1, w.size - w.padding), 8);
  w.output = (w.input + w.padding + random_case->Between(0, w.size - 1) - w.size) / w.stride + 1;
  return w;
}

TEST(DepthwiseKernelTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(300, [](RandomCase& random_case) {
    const WindowGeometry g = {RandomWindow(&random_case), RandomWindow(&random_case), random_case.Size(1, 90)};
    if (g.y.output < 1 || g.x.output < 1) return;
    const Sizes sizes(g);
    const int64_t count = random_case.Between(1, 3);
    const float* const x = random_case.Input(random_case.Numbers(count * sizes.input));
    const float* const w = random_case.Input(random_case.Numbers(sizes.kernel));
    const float* const dy = random_case.Input(random_case.Numbers(count * sizes.output));
    const float* const bias = random_case.OneIn(3) ? nullptr : random_case.Input(random_case.Numbers(g.channels));
    DepthwiseImage(g, x, w, bias, random_case.Output(sizes.output));
    DepthwiseInputGradient(g, dy, w, random_case.Output(sizes.input));
    DepthwiseKernelGradient(g, count, x, dy, 0, g.y.size * g.x.size, random_case.Output(sizes.kernel));
  });
}

}  // namespace
}  // namespace lockstep
