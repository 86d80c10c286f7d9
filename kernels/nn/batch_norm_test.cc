#include "lockstep/kernels/nn/batch_norm.h"

#include <cmath>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/kernels/nn/activation.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

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

// Returns the outputs of all loops.
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

// Computes each channel with the header's formulas, one element at a time.
struct ChannelReference {
  float mean, scale, shift;

  float Distance(float x) const { return x - mean; }
  float Z(float x) const { return std::fma(Distance(x), scale, shift); }
  static float Value(const ActivationKernel& f, float z) {
    ApplyActivation(f, 1, &z, &z);
    return z;
  }
  static float Gradient(const ActivationKernel& f, float value, float dy) {
    ApplyActivationGradient(f, 1, &value, &dy, &dy);
    return dy;
  }
};

TEST(BatchNormKernelTest, TargetsAgreeOnRandomShapes) {
  const ActivationKernel all[] = {
      {ActivationType::kIdentity}, {ActivationType::kRelu},    {ActivationType::kLeakyRelu, 0.2f},
      {ActivationType::kTanh},     {ActivationType::kSigmoid}, {ActivationType::kGelu},
      {ActivationType::kRelu6}};
  const NormGradientMode modes[] = {NormGradientMode::kFromInput, NormGradientMode::kFromInputAndStore,
                                    NormGradientMode::kFromOutputAndStore};
  ForEachRandomCase(600, [&](RandomCase& c) {
    const ActivationKernel& f = c.OneOf(all);
    const NormGradientMode mode = c.OneOf(modes);
    const int64_t rows = c.Size(1, 40), columns = c.Size(1, 140), size = rows * columns;
    const std::vector<float> mean = c.Numbers(columns), scale = c.Numbers(columns), shift = c.Numbers(columns);
    const std::vector<float> offset = c.Numbers(columns), slope = c.Numbers(columns);
    const std::vector<float> x = c.Numbers(size), y = c.Numbers(size), dy = c.Numbers(size);
    const ChannelNumbers channels{c.Input(mean), c.Input(scale), c.Input(shift)};
    const float* const x_input = c.Input(x);
    float* const normal = c.Output(size);
    float* const means = c.Output(columns);
    float* const squares = c.Output(columns);
    float* const dz = c.InOut(dy);
    float* const products = c.Output(columns);
    float* const sums = c.Output(columns);
    const bool in_place = c.OneIn(2);
    float* const dx = in_place ? c.InOut(dy) : c.Output(size);
    NormalizeColumns(f, rows, columns, channels, x_input, normal);
    ColumnMeansAndSquares(rows, columns, x_input, means, squares);
    SumNormGradients(f, mode, rows, columns, channels, x_input,
                     mode == NormGradientMode::kFromOutputAndStore ? c.Input(y) : nullptr, dz, products, sums);
    NormInputGradient(f, rows, columns, channels, c.Input(offset), c.Input(slope), x_input, in_place ? dx : c.Input(dy),
                      dx);
    for (int64_t column = 0; column < columns; ++column) {
      const ChannelReference channel{mean[column], scale[column], shift[column]};
      float x_sum = 0, square = 0, product = 0, sum = 0;
      for (int64_t i = column; i < size; i += columns) {
        const float z = channel.Z(x[i]);
        const float gradient = channel.Gradient(f, mode == NormGradientMode::kFromOutputAndStore ? y[i] : z, dy[i]);
        x_sum += x[i];
        product = std::fma(gradient, channel.Distance(x[i]), product);
        sum += gradient;
        ASSERT_PRED2(SameFloats, normal[i], channel.Value(f, z)) << i;
        ASSERT_PRED2(SameFloats, dz[i], mode == NormGradientMode::kFromInput ? dy[i] : gradient) << i;
        const float taken = std::fma(channel.Distance(x[i]), slope[column], offset[column]);
        ASSERT_PRED2(SameFloats, dx[i], channel.scale * channel.Gradient(f, z, dy[i]) - taken) << i;
      }
      const float x_mean = x_sum / static_cast<float>(rows);
      for (int64_t i = column; i < size; i += columns) square = std::fma(x[i] - x_mean, x[i] - x_mean, square);
      ASSERT_PRED2(SameFloats, means[column], x_mean) << column;
      ASSERT_PRED2(SameFloats, squares[column], square) << column;
      ASSERT_PRED2(SameFloats, products[column], product) << column;
      ASSERT_PRED2(SameFloats, sums[column], sum) << column;
    }
  });
}

}  // namespace
}  // namespace lockstep
