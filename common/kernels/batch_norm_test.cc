#include "lockstep/common/kernels/batch_norm.h"

#include <cmath>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/common/kernels/testing/each_target.h"
#include "lockstep/common/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

struct Problem {
  Problem(int64_t rows, int64_t columns)
      : rows(rows),
        columns(columns),
        x(RandomFloats(rows * columns, 1)),
        y(RandomFloats(rows * columns, 2)),
        dy(RandomFloats(rows * columns, 3)),
        mean(RandomFloats(columns, 4)),
        scale(RandomFloats(columns, 5)),
        shift(RandomFloats(columns, 6)),
        offset(RandomFloats(columns, 7)),
        slope(RandomFloats(columns, 8)) {}
  ChannelNumbers channels() const { return {mean.data(), scale.data(), shift.data()}; }

  int64_t rows, columns;
  std::vector<float> x, y, dy, mean, scale, shift, offset, slope;
};

const ActivationKernel kIdentity;
const ActivationKernel kRelu{ActivationType::kRelu};

// Each of the loops.
std::vector<float> Everything(const Problem& p, const ActivationKernel& f, NormGradientMode mode) {
  const int64_t size = p.rows * p.columns;
  std::vector<float> y(size), dx(size), dz = p.dy, sums(4 * p.columns);
  NormalizeColumns(f, p.rows, p.columns, p.channels(), p.x.data(), y.data());
  ColumnMeansAndSquares(p.rows, p.columns, p.x.data(), sums.data(), sums.data() + p.columns);
  SumNormGradients(f, mode, p.rows, p.columns, p.channels(), p.x.data(), p.y.data(), dz.data(),
                   sums.data() + 2 * p.columns, sums.data() + 3 * p.columns);
  NormInputGradient(f, p.rows, p.columns, p.channels(), p.offset.data(), p.slope.data(), p.x.data(), p.dy.data(),
                    dx.data());
  std::vector<float> all = y;
  for (const std::vector<float>* part : {&dx, &dz, &sums}) all.insert(all.end(), part->begin(), part->end());
  return all;
}

TEST(BatchNormKernelTest, EveryTargetHasTheSameBits) {
  for (const int64_t rows : {1, 2, 9}) {
    for (int64_t columns = 1; columns <= 140; columns += 1 + columns / 15) {
      const Problem problem(rows, columns);
      for (const ActivationKernel& f : {kIdentity, kRelu, ActivationKernel{ActivationType::kGelu}}) {
        for (const NormGradientMode mode : {NormGradientMode::kFromInput, NormGradientMode::kFromInputAndStore,
                                            NormGradientMode::kFromOutputAndStore}) {
          ExpectSameBitsOnEachTarget([&] { return Everything(problem, f, mode); });
        }
      }
    }
  }
}

using Array = Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<const Array>;

TEST(BatchNormKernelTest, AgreesWithEigen) {
  const Problem p(50, 37);
  const auto row = [&](const std::vector<float>& v) -> Array { return Map(v.data(), 1, 37).replicate(50, 1); };
  const Map x(p.x.data(), 50, 37), dy(p.dy.data(), 50, 37);
  const Array z = (x - row(p.mean)) * row(p.scale) + row(p.shift);
  const Array dz = (z > 0).select(dy, 0.0f);
  const Array dx = row(p.scale) * dz - ((x - row(p.mean)) * row(p.slope) + row(p.offset));
  const Array means = x.colwise().mean();
  ForEachTarget([&] {
    const std::vector<float> all = Everything(p, kRelu, NormGradientMode::kFromInputAndStore);
    const int64_t size = 50 * 37;
    const auto distance = [&](int64_t begin, int64_t rows, const Array& expected) {
      return (Map(all.data() + begin, rows, 37) - expected).abs().maxCoeff();
    };
    EXPECT_LT(distance(0, 50, z.max(0.0f)), 1e-5);
    EXPECT_LT(distance(size, 50, dx), 1e-5);
    EXPECT_EQ(distance(2 * size, 50, dz), 0);
    EXPECT_LT(distance(3 * size, 1, means), 1e-6);
    EXPECT_LT(distance(3 * size + 37, 1, (x - means.replicate(50, 1)).square().colwise().sum()), 1e-4);
    EXPECT_LT(distance(3 * size + 2 * 37, 1, (dz * (x - row(p.mean))).colwise().sum()), 1e-4);
    EXPECT_LT(distance(3 * size + 3 * 37, 1, dz.colwise().sum()), 1e-5);
  });
}

TEST(BatchNormKernelTest, TheGradientStaysUnlessItIsToBeStored) {
  const Problem p(3, 5);
  std::vector<float> dy = p.dy, products(5), sums(5);
  SumNormGradients(kRelu, NormGradientMode::kFromInput, 3, 5, p.channels(), p.x.data(), nullptr, dy.data(),
                   products.data(), sums.data());
  EXPECT_EQ(dy, p.dy);
}

}  // namespace
}  // namespace lockstep
