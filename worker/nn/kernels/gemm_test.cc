#include "lockstep/worker/nn/kernels/gemm.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/worker/nn/kernels/tile_kernel.h"

namespace lockstep {
namespace {

std::vector<float> Random(int64_t size, uint64_t stream) {
  std::vector<float> values(size);
  Philox(1, stream).FillNormal(absl::MakeSpan(values));
  return values;
}

// A matrix with gaps between its rows, or columns when transposed.
struct Operand {
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
const Size kSizes[] = {{1, 1, 1},    {1, 784, 10},   {2, 3, 17},   {3, 16, 16},   {5, 400, 33},
                       {6, 401, 8},  {7, 9, 31},     {12, 64, 48}, {13, 805, 20}, {64, 100, 300},
                       {193, 30, 7}, {200, 17, 270}, {390, 8, 65}, {11, 1201, 16}};

std::vector<float> Product(const Operand& a, const Operand& b) {
  std::vector<float> c(a.matrix.rows * b.matrix.columns, std::nanf(""));
  Multiply(a.matrix, b.matrix, c.data(), b.matrix.columns);
  return c;
}

TEST(GemmTest, MultipliesMatricesOfAnySizeAndOrder) {
  for (const Size& size : kSizes) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        const Operand a(size.rows, size.inner, a_transposed, 1);
        const Operand b(size.inner, size.columns, b_transposed, 2);
        const std::vector<float> c = Product(a, b);
        for (int64_t i = 0; i < size.rows; ++i) {
          for (int64_t j = 0; j < size.columns; ++j) {
            double expected = 0;
            for (int64_t k = 0; k < size.inner; ++k) expected += static_cast<double>(a.at(i, k)) * b.at(k, j);
            ASSERT_NEAR(c[i * size.columns + j], expected, 1e-5 * (1 + std::sqrt(size.inner)))
                << size.rows << "x" << size.inner << "x" << size.columns << " " << a_transposed << b_transposed;
          }
        }
      }
    }
  }
}

TEST(GemmTest, AgreesWithEigen) {
  using RowMajorMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  RowMajorMatrix a(150, 500), b(500, 210), c(150, 210);
  Philox(1, 1).FillNormal({a.data(), static_cast<size_t>(a.size())});
  Philox(1, 2).FillNormal({b.data(), static_cast<size_t>(b.size())});
  Multiply(RowMajor(a.data(), 150, 500), RowMajor(b.data(), 500, 210), c.data(), 210);
  EXPECT_LT((c - a * b).cwiseAbs().maxCoeff(), 2e-4f);
}

TEST(GemmTest, AnElementsBitsDependOnItsRowAndColumnAlone) {
  for (const Size& size : kSizes) {
    for (const bool transposed : {false, true}) {
      const Operand a(size.rows, size.inner, transposed, 1);
      const Operand b(size.inner, size.columns, transposed, 2);
      const std::vector<float> whole = Product(a, b);
      // Each element as a product by itself.
      for (int64_t i = 0; i < size.rows; i += 1 + size.rows / 7) {
        for (int64_t j = 0; j < size.columns; j += 1 + size.columns / 5) {
          Matrix row = a.matrix;
          row.data += transposed ? i : i * row.stride;
          row.rows = 1;
          Matrix column = b.matrix;
          column.data += transposed ? j * column.stride : j;
          column.columns = 1;
          float alone;
          Multiply(row, column, &alone, 1);
          ASSERT_EQ(alone, whole[i * size.columns + j]) << i << " " << j;
        }
      }
    }
  }
}

TEST(GemmTest, OneThreadAndThreeGiveTheSameBits) {
  ComputeContext one(1);
  ComputeContext three(3);
  for (const Size& size : kSizes) {
    const Operand a(size.rows, size.inner, true, 1);
    const Operand b(size.inner, size.columns, false, 2);
    const std::vector<float> expected = Product(a, b);
    for (ComputeContext* compute : {&one, &three}) {
      std::vector<float> c(expected.size(), std::nanf(""));
      ParallelMultiply(compute, a.matrix, b.matrix, c.data(), size.columns);
      EXPECT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0);
    }
  }
}

TEST(GemmTest, FinishesEachTileOnce) {
  ComputeContext compute(3);
  const Operand a(700, 20, false, 1);
  const Operand b(20, 600, false, 2);
  std::vector<float> expected = Product(a, b);
  for (float& x : expected) x += 1;
  std::vector<float> c(expected.size());
  ParallelMultiply(&compute, a.matrix, b.matrix, c.data(), 600, [&](const Tile& tile) {
    EXPECT_EQ(tile.column % kTileColumns, 0);
    for (int64_t i = tile.row; i < tile.row + tile.rows; ++i) {
      for (int64_t j = tile.column; j < tile.column + tile.columns; ++j) c[i * 600 + j] += 1;
    }
  });
  EXPECT_EQ(c, expected);
}

TEST(GemmTest, LeavesTheColumnsBesideTheResultAlone) {
  const Operand a(9, 20, false, 1);
  const Operand b(20, 13, false, 2);
  const std::vector<float> expected = Product(a, b);
  std::vector<float> c(9 * 20, 77.0f);
  Multiply(a.matrix, b.matrix, c.data(), 20);
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t j = 0; j < 20; ++j) EXPECT_EQ(c[i * 20 + j], j < 13 ? expected[i * 13 + j] : 77.0f);
  }
}

TEST(GemmTest, PanelsHoldSixteenColumnsRowByRow) {
  for (const int64_t rows : {1, 7, 8, 9, 20}) {
    for (const int64_t columns : {1, 7, 15, 16, 17, 33}) {
      for (const bool transposed : {false, true}) {
        const Operand b(rows, columns, transposed, 1);
        std::vector<float> panels(NumPanels(columns) * rows * kTileColumns + 1, 77.0f);
        PackPanels(b.matrix, panels.data());
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            const int64_t at = (c / kTileColumns * rows + r) * kTileColumns + c % kTileColumns;
            ASSERT_EQ(panels[at], b.at(r, c)) << rows << " x " << columns << ": " << r << " " << c;
          }
        }
        EXPECT_EQ(panels.back(), 77.0f);
      }
    }
  }
}

TEST(GemmTest, ANotANumberStaysInItsRow) {
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
}

}  // namespace
}  // namespace lockstep
