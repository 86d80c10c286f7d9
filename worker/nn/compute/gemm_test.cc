#include "lockstep/worker/nn/compute/gemm.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/products/gemm.h"
#include "lockstep/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

struct Size {
  int64_t rows, inner, columns;
};
const Size kSizes[] = {{1, 1, 1},      {5, 400, 33}, {64, 100, 300}, {193, 30, 7},
                       {200, 17, 270}, {390, 8, 65}, {11, 1201, 16}};

struct Operands {
  explicit Operands(const Size& size)
      : a(RandomFloats(size.rows * size.inner, 1)),
        b(RandomFloats(size.inner * size.columns, 2)),
        product(size.rows * size.columns, std::nanf("")) {
    left = Transposed(a.data(), size.rows, size.inner);
    right = RowMajor(b.data(), size.inner, size.columns);
    Multiply(left, right, product.data(), size.columns);
  }
  std::vector<float> a, b, product;
  Matrix left, right;
};

TEST(ParallelMultiplyTest, OneThreadAndThreeGiveTheSameBits) {
  ComputeContext one(1);
  ComputeContext three(3);
  for (const Size& size : kSizes) {
    const Operands operands(size);
    for (ComputeContext* compute : {&one, &three}) {
      std::vector<float> c(operands.product.size(), std::nanf(""));
      ParallelMultiply(compute, operands.left, operands.right, c.data(), size.columns);
      EXPECT_EQ(std::memcmp(c.data(), operands.product.data(), c.size() * sizeof(float)), 0);
    }
  }
}

TEST(ParallelMultiplyTest, FinishesEachTileOnce) {
  for (const int threads : {1, 3}) {
    ComputeContext compute(threads);
    const Operands operands({700, 20, 600});
    std::vector<float> c(operands.product.size());
    ParallelMultiply(&compute, operands.left, operands.right, c.data(), 600, [&](const Tile& tile) {
      for (int64_t i = tile.row; i < tile.row + tile.rows; ++i) {
        for (int64_t j = tile.column; j < tile.column + tile.columns; ++j) c[i * 600 + j] += 1;
      }
    });
    for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], operands.product[i] + 1) << i;
  }
}

}  // namespace
}  // namespace lockstep
