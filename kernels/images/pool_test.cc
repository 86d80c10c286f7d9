#include "lockstep/kernels/images/pool.h"

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

// Returns overlapping and disjoint windows, with and without padding, and with gaps between them.
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

// Returns the results and gradients of both kinds of pooling, and the winners.
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

TEST(PoolKernelTest, AddsMeansRowByRowOnEveryTarget) {
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

// Returns a sliding window that overlaps the input at every position.
SlidingWindow RandomSlide(RandomCase* c) {
  SlidingWindow w;
  w.input = c->Size(1, 20);
  w.size = c->Between(1, 5);
  w.stride = c->Between(1, 6);
  w.padding = c->Between(0, w.size - 1);
  w.output = c->Between(1, (w.input - 1 + w.padding) / w.stride + 1);
  return w;
}

// Returns the indices of the input elements in the window of output i, row by row.
std::vector<int64_t> WindowOf(const WindowGeometry& g, int64_t i) {
  const int64_t top = g.y.first(i / g.channels / g.x.output);
  const int64_t left = g.x.first(i / g.channels % g.x.output);
  std::vector<int64_t> window;
  for (int64_t y = std::max<int64_t>(0, top); y < std::min(g.y.input, top + g.y.size); ++y) {
    for (int64_t x = std::max<int64_t>(0, left); x < std::min(g.x.input, left + g.x.size); ++x) {
      window.push_back((y * g.x.input + x) * g.channels + i % g.channels);
    }
  }
  return window;
}

TEST(PoolKernelTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(600, [](RandomCase& c) {
    const WindowGeometry g{RandomSlide(&c), RandomSlide(&c), c.Size(1, 70)};
    const Sizes sizes(g);
    const std::vector<float> x = c.Numbers(sizes.input), dy = c.Numbers(sizes.output);
    const float* const x_input = c.Input(x);
    const float* const dy_input = c.Input(dy);
    int32_t* const winners = c.Output<int32_t>(sizes.output);
    float* const largest = c.Output(sizes.output);
    float* const alone = c.Output(sizes.output);
    float* const mean = c.Output(sizes.output);
    float* const largest_dx = c.Output(sizes.input);
    float* const mean_dx = c.Output(sizes.input);
    MaxPoolImage(g, x_input, winners, largest);
    MaxPoolImage(g, x_input, nullptr, alone);
    AveragePoolImage(g, x_input, mean);
    MaxPoolGradient(g, c.Input(std::vector<int32_t>(winners, winners + sizes.output)), dy_input, largest_dx);
    AveragePoolGradient(g, dy_input, mean_dx);

    // If the windows are disjoint, a position gets its part unchanged. Otherwise it gets the sum of its parts.
    const bool disjoint = g.y.stride >= g.y.size && g.x.stride >= g.x.size;
    std::vector<float> expected_largest_dx(sizes.input), expected_mean_dx(sizes.input);
    const auto add = [&](float part, float* dx) { *dx = disjoint ? part : *dx + part; };
    for (int64_t i = 0; i < sizes.output; ++i) {
      const std::vector<int64_t> window = WindowOf(g, i);
      const auto count = static_cast<float>(window.size());
      float sum = 0;
      size_t winner = 0;
      for (size_t k = 0; k < window.size(); ++k) {
        sum += x[window[k]];
        if (x[window[k]] > x[window[winner]] || std::isnan(x[window[k]])) winner = k;
        add(dy[i] / count, &expected_mean_dx[window[k]]);
      }
      for (size_t k = 0; k < window.size(); ++k) add(k == winner ? dy[i] : 0, &expected_largest_dx[window[k]]);
      ASSERT_EQ(winners[i], static_cast<int32_t>(winner)) << i;
      ASSERT_PRED2(SameFloats, largest[i], x[window[winner]]) << i;
      ASSERT_PRED2(SameFloats, alone[i], largest[i]) << i;
      ASSERT_PRED2(SameFloats, mean[i], sum / count) << i;
    }
    for (int64_t i = 0; i < sizes.input; ++i) {
      ASSERT_PRED2(SameFloats, largest_dx[i], expected_largest_dx[i]) << i;
      ASSERT_PRED2(SameFloats, mean_dx[i], expected_mean_dx[i]) << i;
    }
  });
}

TEST(PoolKernelTest, TargetsAgreeOnMeansOfRandomRows) {
  ForEachRandomCase(600, [](RandomCase& c) {
    const int64_t rows = c.Size(1, 60), columns = c.Size(1, 140);
    const std::vector<float> x = c.Numbers(rows * columns), dy = c.Numbers(columns);
    float* const y = c.Output(columns);
    float* const dx = c.Output(rows * columns);
    MeanOfRows(rows, columns, c.Input(x), y);
    MeanOfRowsGradient(rows, columns, c.Input(dy), dx);
    const auto count = static_cast<float>(rows);
    std::vector<float> sums(columns);
    for (int64_t i = 0; i < rows * columns; ++i) {
      sums[i % columns] += x[i];
      ASSERT_PRED2(SameFloats, dx[i], dy[i % columns] / count) << i;
    }
    for (int64_t i = 0; i < columns; ++i) ASSERT_PRED2(SameFloats, y[i], sums[i] / count) << i;
  });
}

}  // namespace
}  // namespace lockstep
