#include "lockstep/kernels/products/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

std::vector<float> Random(int64_t size, uint64_t stream) {
  std::vector<float> values(size);
  Philox(1, stream).FillNormal(absl::MakeSpan(values));
  return values;
}

// A matrix with gaps between its rows, or between its columns if transposed.
struct Operand {
  Operand() = default;
  Operand(int64_t rows, int64_t columns, bool transposed, uint64_t stream)
      : values(Random((transposed ? columns * (rows + 3) : rows * (columns + 3)), stream)),
        matrix{values.data(), rows, columns, (transposed ? rows : columns) + 3, transposed} {}
  float at(int64_t r, int64_t c) const {
    return matrix.transposed ? values[c * matrix.stride + r] : values[r * matrix.stride + c];
  }
  std::vector<float> values;
  Matrix matrix;
};

struct Size {
  int64_t rows, inner, columns;
};
const Size kSizes[] = {{1, 1, 1},    {1, 784, 10},   {2, 3, 17},   {3, 16, 16},    {5, 400, 33},
                       {6, 401, 8},  {7, 9, 31},     {12, 64, 48}, {13, 805, 20},  {64, 100, 300},
                       {193, 30, 7}, {200, 17, 270}, {390, 8, 65}, {64, 256, 300}, {11, 1201, 16}};

std::vector<float> Product(const Operand& a, const Operand& b) {
  std::vector<float> c(a.matrix.rows * b.matrix.columns, std::nanf(""));
  Multiply(a.matrix, b.matrix, c.data(), b.matrix.columns);
  return c;
}

// Computes each element as gemm.h describes, one at a time.
std::vector<float> ReferenceProduct(const Operand& a, const Operand& b) {
  const int64_t inner = a.matrix.columns;
  const int64_t blocks = (inner + 399) / 400;
  const int64_t size = (inner + blocks - 1) / blocks;
  std::vector<float> c;
  for (int64_t i = 0; i < a.matrix.rows; ++i) {
    for (int64_t j = 0; j < b.matrix.columns; ++j) {
      float sum = 0;
      for (int64_t begin = 0; begin < inner; begin += size) {
        float chain = 0;
        for (int64_t k = begin; k < std::min(inner, begin + size); ++k) chain = std::fma(a.at(i, k), b.at(k, j), chain);
        sum = begin == 0 ? chain : sum + chain;
      }
      c.push_back(sum);
    }
  }
  return c;
}

TEST(GemmTest, EveryTargetHasTheBitsOfTheChains) {
  for (const Size& size : kSizes) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        const Operand a(size.rows, size.inner, a_transposed, 1);
        const Operand b(size.inner, size.columns, b_transposed, 2);
        const std::vector<float> expected = ReferenceProduct(a, b);
        ForEachTarget([&] {
          ASSERT_EQ(Product(a, b), expected)
              << size.rows << "x" << size.inner << "x" << size.columns << " " << a_transposed << b_transposed;
        });
      }
    }
  }
}

TEST(GemmTest, AgreesWithEigen) {
  ForEachTarget([] {
    using RowMajorMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    RowMajorMatrix a(150, 500), b(500, 210), c(150, 210);
    Philox(1, 1).FillNormal({a.data(), static_cast<size_t>(a.size())});
    Philox(1, 2).FillNormal({b.data(), static_cast<size_t>(b.size())});
    Multiply(RowMajor(a.data(), 150, 500), RowMajor(b.data(), 500, 210), c.data(), 210);
    EXPECT_LT((c - a * b).cwiseAbs().maxCoeff(), 2e-4f);
  });
}

TEST(GemmTest, APartHasTheBitsOfTheWhole) {
  const Operand a(70, 450, false, 1);
  const Operand b(450, 90, true, 2);
  const std::vector<float> whole = Product(a, b);
  ForEachTarget([&] {
    const Tile part{3, 17, 50, 60};
    std::vector<float> c(whole.size(), 77.0f);
    MultiplyPart(a.matrix, b.matrix, part, c.data(), 90);
    for (int64_t i = 0; i < 70; ++i) {
      for (int64_t j = 0; j < 90; ++j) {
        const bool inside = i >= 3 && i < 53 && j >= 17 && j < 77;
        ASSERT_EQ(c[i * 90 + j], inside ? whole[i * 90 + j] : 77.0f) << i << " " << j;
      }
    }
  });
}

TEST(GemmTest, ASumOfNoProductsIsZero) {
  ForEachTarget([] {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        const Operand a(9, 0, a_transposed, 1);
        const Operand b(0, 13, b_transposed, 2);
        std::vector<float> c(9 * 20, 77.0f);
        MultiplyPart(a.matrix, b.matrix, {1, 2, 8, 11}, c.data(), 20);
        for (int64_t i = 0; i < 9; ++i) {
          for (int64_t j = 0; j < 20; ++j) ASSERT_EQ(c[i * 20 + j], i >= 1 && j >= 2 && j < 13 ? 0.0f : 77.0f);
        }
        EXPECT_EQ(Product(a, b), std::vector<float>(9 * 13));
      }
    }
  });
}

TEST(GemmTest, WritesNothingNextToTheResult) {
  ForEachTarget([] {
    const Operand a(9, 20, false, 1);
    const Operand b(20, 13, false, 2);
    const std::vector<float> expected = Product(a, b);
    std::vector<float> c(9 * 20, 77.0f);
    Multiply(a.matrix, b.matrix, c.data(), 20);
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < 20; ++j) EXPECT_EQ(c[i * 20 + j], j < 13 ? expected[i * 13 + j] : 77.0f);
    }
  });
}

TEST(GemmTest, ANotANumberStaysInItsRow) {
  ForEachTarget([] {
    Operand a(8, 30, false, 1);
    const Operand b(30, 18, false, 2);
    const std::vector<float> before = Product(a, b);
    a.values[3 * a.matrix.stride + 5] = std::nanf("");
    const std::vector<float> after = Product(a, b);
    for (int64_t i = 0; i < 8; ++i) {
      for (int64_t j = 0; j < 18; ++j) {
        if (i == 3) {
          EXPECT_TRUE(std::isnan(after[i * 18 + j]));
        } else {
          EXPECT_EQ(after[i * 18 + j], before[i * 18 + j]);
        }
      }
    }
  });
}

// A matrix with gaps for a random case. Its memory ends with its last element.
struct RandomOperand {
  RandomOperand(RandomCase* c, int64_t rows, int64_t columns) {
    const bool transposed = c->OneIn(2);
    const int64_t lines = transposed ? columns : rows;
    const int64_t length = transposed ? rows : columns;
    const int64_t stride = length + c->Between(0, 3);
    operand.values = c->Numbers((lines - 1) * stride + length);
    operand.matrix = {c->Input(operand.values), rows, columns, stride, transposed};
  }
  Operand operand;
};

TEST(GemmTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(250, [](RandomCase& c) {
    const int64_t rows = c.Size(1, 210), inner = c.Size(1, 850);
    const int64_t columns = c.Size(1, std::max<int64_t>(1, std::min<int64_t>(290, 400000 / (rows * inner))));
    const RandomOperand a(&c, rows, inner), b(&c, inner, columns);
    const int64_t stride = columns + c.Between(0, 3);
    float* const whole = c.Output(rows, columns, stride);
    Multiply(a.operand.matrix, b.operand.matrix, whole, stride);
    Tile tile{c.Between(0, rows - 1), c.Between(0, columns - 1), 0, 0};
    tile.rows = c.Size(1, rows - tile.row);
    tile.columns = c.Size(1, columns - tile.column);
    float* const part = c.Output(tile.rows, tile.columns, stride);
    MultiplyPart(a.operand.matrix, b.operand.matrix, tile, part - tile.row * stride - tile.column, stride);
    const std::vector<float> expected = ReferenceProduct(a.operand, b.operand);
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int64_t row = i / columns, column = i % columns;
      ASSERT_PRED2(SameFloats, whole[row * stride + column], expected[i]) << row << ", " << column;
      if (row >= tile.row && row < tile.row + tile.rows && column >= tile.column &&
          column < tile.column + tile.columns) {
        const float actual = part[(row - tile.row) * stride + column - tile.column];
        ASSERT_PRED2(SameFloats, actual, expected[i]) << row << ", " << column;
      }
    }
  });
}

}  // namespace
}  // namespace lockstep
