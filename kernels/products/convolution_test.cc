#include "lockstep/kernels/products/convolution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

struct Case {
  int64_t rows, width, channels, kernel_y, kernel_x, filters, stride_y, stride_x;
};

// Images without a border, in which windows of kernel_y x kernel_x move by strides.
struct Operands {
  explicit Operands(const Case& c) : columns(c.filters) {
    const int64_t row_size = ((c.width - 1) * c.stride_x + c.kernel_x) * c.channels;
    from = {c.rows, c.width, c.stride_y * row_size, c.stride_x * c.channels};
    patch = {c.kernel_y, c.kernel_x * c.channels, 1, row_size};
    images = RandomFloats(((c.rows - 1) * c.stride_y + c.kernel_y) * row_size, 1);
    matrix = RandomFloats(patch_size() * columns, 2);
    bias = RandomFloats(columns, 3);
  }
  int64_t patch_size() const { return patch.runs * patch.length; }

  // Returns the expected result of MultiplyPatches for pixel (y, x) and column c.
  float Chain(int64_t y, int64_t x, int64_t c, bool with_bias) const {
    float sum = 0;
    for (int64_t e = 0; e < patch_size(); ++e) {
      const int64_t at = y * from.row_stride + x * from.column_stride + e / patch.length * patch.run_stride;
      sum = std::fma(images[at + e % patch.length], matrix[e * columns + c], sum);
    }
    return with_bias ? sum + bias[c] : sum;
  }
  std::vector<float> Expected(bool with_bias) const {
    std::vector<float> expected;
    for (int64_t i = 0; i < from.rows * from.columns; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        expected.push_back(Chain(i / from.columns, i % from.columns, c, with_bias));
      }
    }
    return expected;
  }

  int64_t columns;
  PixelGrid from;
  TileElements patch;
  std::vector<float> images, matrix, bias;
};

ResultArray Compute(const Operands& o, bool with_bias) {
  std::vector<float> panels(o.patch_size() * PaddedColumns(o.columns) + 16);
  // Has the same alignment as the layers' panels.
  float* const aligned = panels.data() + (16 - reinterpret_cast<uintptr_t>(panels.data()) / sizeof(float) % 16) % 16;
  PackPanels(RowMajor(o.matrix.data(), o.patch_size(), o.columns), aligned);
  ResultArray result(o.from.rows * o.from.columns * o.columns);
  MultiplyPatches(o.images.data(), o.from, o.patch, aligned, o.columns, with_bias ? o.bias.data() : nullptr,
                  result.data(), {o.from.rows, o.from.columns, o.from.columns * o.columns, o.columns});
  EXPECT_TRUE(result.borders_intact());
  return result;
}

void ExpectChains(const Case& c) {
  const Operands operands(c);
  for (const bool with_bias : {false, true}) {
    const std::vector<float> expected = operands.Expected(with_bias);
    ForEachTarget([&] {
      ASSERT_EQ(Compute(operands, with_bias).values(), absl::MakeConstSpan(expected))
          << c.width << " pixels, " << c.filters << " filters";
    });
  }
}

TEST(ConvolutionTest, EachSumIsAChainInThePatchsOrder) {
  ExpectChains({5, 6, 3, 3, 2, 7, 1, 1});
  ExpectChains({3, 28, 1, 3, 3, 32, 1, 1});
  ExpectChains({2, 3, 32, 3, 3, 64, 1, 1});
  ExpectChains({1, 1, 1, 1, 1, 1, 1, 1});
}

TEST(ConvolutionTest, RowsOfPixelsMayEndAnywhereInATile) {
  for (int64_t width = 1; width <= 30; ++width) ExpectChains({2, width, 2, 2, 2, 5, 1, 1});
  for (int64_t width = 1; width <= 30; ++width) ExpectChains({2, width, 1, 2, 2, 5, 1, 1});
}

TEST(ConvolutionTest, ColumnsMayEndAnywhereInAPanel) {
  for (int64_t filters = 1; filters <= 67; ++filters) ExpectChains({2, 15, 2, 1, 2, filters, 1, 1});
}

TEST(ConvolutionTest, HeightAndWidthHaveStridesOfTheirOwn) {
  ExpectChains({3, 5, 3, 2, 2, 9, 2, 1});
  ExpectChains({3, 5, 3, 2, 2, 9, 1, 3});
  ExpectChains({3, 5, 1, 2, 2, 9, 3, 2});
}

TEST(ConvolutionTest, PanelsMayBePackedInPartsOfTheirRows) {
  const Matrix transposed{nullptr, 7, 37, 9, true};
  const std::vector<float> data = RandomFloats(37 * 9, 1);
  ForEachTarget([&] {
    alignas(64) float whole[7 * 64] = {};
    alignas(64) float parts[7 * 64] = {};
    PackPanels({data.data(), 7, 37, transposed.stride, true}, whole);
    PackPanelRows({data.data(), 3, 37, transposed.stride, true}, 0, 7, parts);
    PackPanelRows({data.data() + 3, 4, 37, transposed.stride, true}, 3, 7, parts);
    for (int64_t i = 0; i < 7 * 64; ++i) ASSERT_EQ(parts[i], whole[i]) << i;
  });
}

// Packs panels in one or two parts, from a matrix that may be transposed and have gaps.
const float* RandomPanels(RandomCase* c, const Operands& o) {
  const bool transposed = c->OneIn(2);
  const int64_t rows = o.patch_size();
  const int64_t lines = transposed ? o.columns : rows;
  const int64_t length = transposed ? rows : o.columns;
  const int64_t stride = length + c->Between(0, 3);
  std::vector<float> values((lines - 1) * stride + length);
  for (int64_t e = 0; e < rows * o.columns; ++e) {
    const int64_t row = e / o.columns, column = e % o.columns;
    values[transposed ? column * stride + row : row * stride + column] = o.matrix[e];
  }
  Matrix matrix{c->Input(values), rows, o.columns, stride, transposed};
  // The panels are not a result, because their layout depends on the target.
  float* const panels = const_cast<float*>(c->Input(std::vector<float>(rows * PaddedColumns(o.columns))));
  if (c->OneIn(2)) {
    PackPanels(matrix, panels);
    return panels;
  }
  const int64_t first = c->Between(0, rows);
  matrix.rows = first;
  PackPanelRows(matrix, 0, rows, panels);
  matrix.data += transposed ? first : first * stride;
  matrix.rows = rows - first;
  PackPanelRows(matrix, first, rows, panels);
  return panels;
}

TEST(ConvolutionTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(300, [](RandomCase& c) {
    Case shape{c.Size(1, 6),    c.Size(1, 40),  c.Size(1, 40), c.Between(1, 4), c.Between(1, 4), 1,
               c.Between(1, 3), c.Between(1, 3)};
    const int64_t patch = shape.kernel_y * shape.kernel_x * shape.channels;
    shape.filters = c.Size(1, std::max<int64_t>(1, std::min<int64_t>(80, 200000 / (shape.rows * shape.width * patch))));
    Operands o(shape);
    o.images = c.Numbers(static_cast<int64_t>(o.images.size()));
    o.matrix = c.Numbers(static_cast<int64_t>(o.matrix.size()));
    o.bias = c.Numbers(o.columns);
    const bool with_bias = c.OneIn(2);
    const int64_t pixel = o.columns + c.Between(0, 3), pixels = shape.rows * shape.width;
    float* const result = c.Output(pixels, o.columns, pixel);
    MultiplyPatches(c.Input(o.images), o.from, o.patch, RandomPanels(&c, o), o.columns,
                    with_bias ? c.Input(o.bias) : nullptr, result,
                    {shape.rows, shape.width, shape.width * pixel, pixel});
    const std::vector<float> expected = o.Expected(with_bias);
    for (int64_t i = 0; i < pixels * o.columns; ++i) {
      ASSERT_PRED2(SameFloats, result[i / o.columns * pixel + i % o.columns], expected[i]) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
