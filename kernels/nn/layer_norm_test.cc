#include "lockstep/kernels/nn/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

constexpr int64_t kRows = 5;
constexpr float kEpsilon = 0.01f;

// Adds the terms in the documented order, one addition at a time.
float SumOfRow(const std::vector<float>& terms) {
  const auto size = static_cast<int64_t>(terms.size());
  float parts[32] = {};
  for (int64_t c = 0; c < size; ++c) {
    float& part = parts[c < size / 32 * 32 ? c % 32 : c % 8];
    part += terms[c];
  }
  float s[8];
  for (int j = 0; j < 8; ++j) s[j] = (parts[j] + parts[8 + j]) + (parts[16 + j] + parts[24 + j]);
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

struct Inputs {
  explicit Inputs(int64_t columns)
      : rows(kRows),
        columns(columns),
        x(RandomFloats(kRows * columns, 1)),
        dy(RandomFloats(kRows * columns, 2)),
        gamma(RandomFloats(columns, 3)),
        beta(RandomFloats(columns, 4)) {}
  Inputs(RandomCase* c, int64_t rows, int64_t columns)
      : rows(rows),
        columns(columns),
        x(c->Numbers(rows * columns)),
        dy(c->Numbers(rows * columns)),
        gamma(c->Numbers(columns)),
        beta(c->Numbers(columns)) {}
  float size() const { return static_cast<float>(columns); }

  int64_t rows, columns;
  std::vector<float> x, dy, gamma, beta;
};

struct Results {
  Results(int64_t rows, int64_t columns)
      : means(rows), inverses(rows), y(rows * columns), dx(rows * columns), products(columns), sums(columns) {}

  std::vector<float> means, inverses, y, dx, products, sums;
};

float RowMean(const Inputs& in, int64_t row) {
  const auto begin = in.x.begin() + row * in.columns;
  return SumOfRow({begin, begin + in.columns}) / in.size();
}

float RowVariance(const Inputs& in, int64_t row, float mean) {
  std::vector<float> squares(in.columns);
  for (int64_t c = 0; c < in.columns; ++c) {
    const float distance = in.x[row * in.columns + c] - mean;
    squares[c] = distance * distance;
  }
  return SumOfRow(squares) / in.size();
}

// Computes the header's formulas, one operation at a time.
Results Reference(const Inputs& in) {
  Results r(in.rows, in.columns);
  for (int64_t row = 0; row < in.rows; ++row) {
    r.means[row] = RowMean(in, row);
    r.inverses[row] = 1.0f / std::sqrt(RowVariance(in, row, r.means[row]) + kEpsilon);
    std::vector<float> normal(in.columns), g(in.columns), products(in.columns);
    for (int64_t c = 0; c < in.columns; ++c) {
      const int64_t at = row * in.columns + c;
      normal[c] = (in.x[at] - r.means[row]) * r.inverses[row];
      r.y[at] = std::fma(normal[c], in.gamma[c], in.beta[c]);
      g[c] = in.dy[at] * in.gamma[c];
      products[c] = g[c] * normal[c];
      r.products[c] = std::fma(in.dy[at], normal[c], r.products[c]);
      r.sums[c] += in.dy[at];
    }
    const float g_mean = SumOfRow(g) / in.size();
    const float product_mean = SumOfRow(products) / in.size();
    for (int64_t c = 0; c < in.columns; ++c) {
      r.dx[row * in.columns + c] = r.inverses[row] * ((g[c] - g_mean) - normal[c] * product_mean);
    }
  }
  return r;
}

std::vector<float> ValuesOf(const ResultArray& array) {
  EXPECT_TRUE(array.borders_intact());
  return {array.values().begin(), array.values().end()};
}

Results Actual(const Inputs& in) {
  const int64_t size = kRows * in.columns;
  ResultArray means(kRows), inverses(kRows), y(size), dx(size), products(in.columns), sums(in.columns);
  NormalizeRows(kRows, in.columns, kEpsilon, in.gamma.data(), in.beta.data(), in.x.data(), means.data(),
                inverses.data(), y.data());
  const RowMoments moments{means.data(), inverses.data()};
  NormalizeRowsGradient(kRows, in.columns, in.gamma.data(), moments, in.x.data(), in.dy.data(), dx.data());
  SumRowNormGradients(kRows, in.columns, moments, in.x.data(), in.dy.data(), products.data(), sums.data());
  Results r(kRows, in.columns);
  r.means = ValuesOf(means);
  r.inverses = ValuesOf(inverses);
  r.y = ValuesOf(y);
  r.dx = ValuesOf(dx);
  r.products = ValuesOf(products);
  r.sums = ValuesOf(sums);
  return r;
}

TEST(LayerNormKernelTest, EveryTargetFollowsTheDocumentedOrder) {
  for (int64_t columns = 1; columns < 300; columns += 1 + columns / 40) {
    const Inputs in(columns);
    const Results expected = Reference(in);
    ForEachTarget([&] {
      const Results actual = Actual(in);
      ASSERT_EQ(actual.means, expected.means) << columns;
      ASSERT_EQ(actual.inverses, expected.inverses) << columns;
      ASSERT_EQ(actual.y, expected.y) << columns;
      ASSERT_EQ(actual.dx, expected.dx) << columns;
      ASSERT_EQ(actual.products, expected.products) << columns;
      ASSERT_EQ(actual.sums, expected.sums) << columns;
    });
  }
}

TEST(LayerNormKernelTest, TheGradientMayReplaceTheOutputs) {
  const Inputs in(53);
  const Results expected = Reference(in);
  ForEachTarget([&] {
    std::vector<float> gradient = in.dy;
    NormalizeRowsGradient(kRows, 53, in.gamma.data(), {expected.means.data(), expected.inverses.data()}, in.x.data(),
                          gradient.data(), gradient.data());
    ASSERT_EQ(gradient, expected.dx);
  });
}

// Lanes beyond the last column must not contribute, whatever the row's mean is.
TEST(LayerNormKernelTest, ARowOfOneNumberHasNoGradient) {
  const float gamma = 1, mean = 3e38f, inverse = 10, dy = 0;
  ForEachTarget([&] {
    float dx = 1;
    NormalizeRowsGradient(1, 1, &gamma, {&mean, &inverse}, &mean, &dy, &dx);
    EXPECT_EQ(dx, 0);
  });
}

void ExpectSame(const float* actual, const std::vector<float>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_PRED2(SameFloats, actual[i], expected[i]) << i;
}

TEST(LayerNormKernelTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(600, [](RandomCase& c) {
    const int64_t rows = c.Size(1, 20), columns = c.Size(1, 300), size = rows * columns;
    const Inputs in(&c, rows, columns);
    const float* const gamma = c.Input(in.gamma);
    const float* const x = c.Input(in.x);
    float* const means = c.Output(rows);
    float* const inverses = c.Output(rows);
    float* const y = c.Output(size);
    NormalizeRows(rows, columns, kEpsilon, gamma, c.Input(in.beta), x, means, inverses, y);
    const RowMoments moments{c.Input(std::vector<float>(means, means + rows)),
                             c.Input(std::vector<float>(inverses, inverses + rows))};
    const bool in_place = c.OneIn(2);
    const float* const dy = c.Input(in.dy);
    float* const products = c.Output(columns);
    float* const sums = c.Output(columns);
    SumRowNormGradients(rows, columns, moments, x, dy, products, sums);
    float* const dx = in_place ? c.InOut(in.dy) : c.Output(size);
    NormalizeRowsGradient(rows, columns, gamma, moments, x, in_place ? dx : dy, dx);
    const Results expected = Reference(in);
    ExpectSame(means, expected.means);
    ExpectSame(inverses, expected.inverses);
    ExpectSame(y, expected.y);
    ExpectSame(products, expected.products);
    ExpectSame(sums, expected.sums);
    ExpectSame(dx, expected.dx);
  });
}

}  // namespace
}  // namespace lockstep
