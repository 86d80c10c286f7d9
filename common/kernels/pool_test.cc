#include "lockstep/common/kernels/pool.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/kernels/testing/each_target.h"
#include "lockstep/common/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

SlidingWindow Slide(int64_t input, int64_t size, int64_t stride, int64_t padding) {
  return {input, size, stride, padding, (input + 2 * padding - size) / stride + 1};
}

// Overlapping and disjoint windows, with and without padding, with gaps between them.
std::vector<WindowGeometry> Geometries(int64_t channels) {
  return {{Slide(6, 2, 2, 0), Slide(8, 2, 2, 0), channels},
          {Slide(7, 3, 2, 1), Slide(5, 3, 1, 1), channels},
          {Slide(7, 2, 3, 0), Slide(9, 1, 2, 0), channels}};
}

struct Sizes {
  explicit Sizes(const WindowGeometry& g)
      : input(g.y.input * g.x.input * g.channels), output(g.y.output * g.x.output * g.channels) {}
  int64_t input, output;
};

// Results and gradients of both kinds, and the winners.
std::vector<float> Everything(const WindowGeometry& g) {
  const Sizes sizes(g);
  const std::vector<float> x = RandomFloats(sizes.input, 1);
  const std::vector<float> dy = RandomFloats(sizes.output, 2);
  std::vector<int32_t> winners(sizes.output, -1);
  ResultArray largest(sizes.output), mean(sizes.output), largest_dx(sizes.input), mean_dx(sizes.input);
  MaxPoolImage(g, x.data(), winners.data(), largest.data());
  AveragePoolImage(g, x.data(), mean.data());
  MaxPoolGradient(g, winners.data(), dy.data(), largest_dx.data());
  AveragePoolGradient(g, dy.data(), mean_dx.data());
  std::vector<float> all(winners.begin(), winners.end());
  for (ResultArray* part : {&largest, &mean, &largest_dx, &mean_dx}) {
    EXPECT_TRUE(part->borders_intact());
    all.insert(all.end(), part->values().begin(), part->values().end());
  }
  return all;
}

TEST(PoolKernelTest, EveryTargetHasTheSameBits) {
  for (int64_t channels = 1; channels <= 70; channels += 1 + channels / 12) {
    for (const WindowGeometry& g : Geometries(channels)) {
      ExpectSameBitsOnEachTarget([&] { return Everything(g); });
    }
  }
}

TEST(PoolKernelTest, AWindowsResultIsItsLargestOrMean) {
  for (const WindowGeometry& g : Geometries(3)) {
    const Sizes sizes(g);
    const std::vector<float> x = RandomIntegers(sizes.input, 1);
    ForEachTarget([&] {
      std::vector<float> largest(sizes.output), mean(sizes.output);
      MaxPoolImage(g, x.data(), nullptr, largest.data());
      AveragePoolImage(g, x.data(), mean.data());
      for (int64_t i = 0; i < sizes.output; ++i) {
        const int64_t top = g.y.first(i / 3 / g.x.output);
        const int64_t left = g.x.first(i / 3 % g.x.output);
        std::vector<float> window;
        float sum = 0;
        for (int64_t y = std::max<int64_t>(0, top); y < std::min(g.y.input, top + g.y.size); ++y) {
          for (int64_t z = std::max<int64_t>(0, left); z < std::min(g.x.input, left + g.x.size); ++z) {
            window.push_back(x[(y * g.x.input + z) * 3 + i % 3]);
            sum += window.back();
          }
        }
        ASSERT_EQ(largest[i], *std::max_element(window.begin(), window.end()));
        ASSERT_EQ(mean[i], sum / static_cast<float>(window.size()));
      }
    });
  }
}

TEST(PoolKernelTest, MeansOfRowsAreAddedRowAfterRowOnEveryTarget) {
  for (int64_t columns = 1; columns < 140; columns += 1 + columns / 20) {
    for (const int64_t rows : {1, 2, 49}) {
      const std::vector<float> x = RandomFloats(rows * columns, 1);
      const std::vector<float> dy = RandomFloats(columns, 2);
      ForEachTarget([&] {
        ResultArray y(columns), dx(rows * columns);
        MeanOfRows(rows, columns, x.data(), y.data());
        MeanOfRowsGradient(rows, columns, dy.data(), dx.data());
        for (int64_t c = 0; c < columns; ++c) {
          float sum = 0;
          for (int64_t row = 0; row < rows; ++row) {
            sum += x[row * columns + c];
            ASSERT_EQ(dx.values()[row * columns + c], dy[c] / static_cast<float>(rows)) << row << " " << c;
          }
          ASSERT_EQ(y.values()[c], sum / static_cast<float>(rows)) << c << " of " << columns;
        }
        ASSERT_TRUE(y.borders_intact());
        ASSERT_TRUE(dx.borders_intact());
      });
    }
  }
}

TEST(PoolKernelTest, ANotANumberWins) {
  const WindowGeometry g{Slide(2, 2, 2, 0), Slide(2, 2, 2, 0), 21};
  for (int position = 0; position < 4; ++position) {
    std::vector<float> x = RandomFloats(4 * 21, 1);
    for (int c = 0; c < 21; ++c) x[position * 21 + c] = std::nanf("");
    ForEachTarget([&] {
      std::vector<float> y(21);
      std::vector<int32_t> winners(21, -1);
      MaxPoolImage(g, x.data(), winners.data(), y.data());
      for (int c = 0; c < 21; ++c) EXPECT_TRUE(std::isnan(y[c]));
    });
  }
}

}  // namespace
}  // namespace lockstep
