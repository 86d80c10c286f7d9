#include "lockstep/kernels/nn/activation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "Eigen/Core"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

constexpr float kSlope = 0.375f;
const ActivationKernel kAll[] = {
    {ActivationType::kIdentity}, {ActivationType::kRelu},    {ActivationType::kLeakyRelu, kSlope},
    {ActivationType::kTanh},     {ActivationType::kSigmoid}, {ActivationType::kGelu},
    {ActivationType::kRelu6}};

// Computes the activation with Eigen, in double precision.
Eigen::ArrayXd Reference(ActivationType type, const Eigen::ArrayXd& x) {
  switch (type) {
    case ActivationType::kIdentity:
      return x;
    case ActivationType::kRelu:
      return x.max(0.0);
    case ActivationType::kRelu6:
      return x.max(0.0).min(6.0);
    case ActivationType::kLeakyRelu:
      return (x > 0.0).select(x, x * kSlope);
    case ActivationType::kTanh:
      return x.tanh();
    case ActivationType::kSigmoid:
      return 1.0 / (1.0 + (-x).exp());
    case ActivationType::kGelu:
      return 0.5 * x * (1.0 + (0.7978845608 * (x + 0.044715 * x.cube())).tanh());
  }
  return x;
}

Eigen::ArrayXd ToArray(const std::vector<float>& values) {
  return Eigen::Map<const Eigen::ArrayXf>(values.data(), static_cast<Eigen::Index>(values.size())).cast<double>();
}

std::vector<float> Values(const ActivationKernel& f, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  ApplyActivation(f, static_cast<int64_t>(x.size()), x.data(), y.data());
  return y;
}

TEST(ActivationKernelTest, ValuesAgreeWithEigen) {
  const std::vector<float> x = RandomFloats(1003, 1);
  for (const ActivationKernel& f : kAll) {
    ForEachTarget([&] {
      const Eigen::ArrayXd y = ToArray(Values(f, x));
      EXPECT_LT((y - Reference(f.type, ToArray(x))).abs().maxCoeff(), 1e-6) << static_cast<int>(f.type);
    });
  }
}

TEST(ActivationKernelTest, Relu6IsFlatOnBothSides) {
  ForEachTarget([] {
    const std::vector<float> x = {-1, 0, 0.5f, 5.75f, 6, 7, std::numeric_limits<float>::infinity()};
    const std::vector<float> y = Values({ActivationType::kRelu6}, x);
    EXPECT_EQ(y, (std::vector<float>{0, 0, 0.5f, 5.75f, 6, 6, 6}));
    std::vector<float> dx(x.size(), 2.0f);
    ApplyActivationGradient({ActivationType::kRelu6}, static_cast<int64_t>(x.size()), y.data(), dx.data(), dx.data());
    EXPECT_EQ(dx, (std::vector<float>{0, 0, 2, 2, 0, 0, 0}));
    EXPECT_TRUE(std::isnan(Values({ActivationType::kRelu6}, {std::nanf("")})[0]));
  });
}

TEST(ActivationKernelTest, GradientsAreTheSlopesOfEigen) {
  const std::vector<float> x = RandomFloats(1003, 1);
  const Eigen::ArrayXd points = ToArray(x);
  const std::vector<float> dy(x.size(), 2.0f);
  for (const ActivationKernel& f : kAll) {
    ForEachTarget([&] {
      const std::vector<float> value = f.type == ActivationType::kGelu ? x : Values(f, x);
      std::vector<float> dx(x.size());
      ApplyActivationGradient(f, 1003, value.data(), dy.data(), dx.data());
      const Eigen::ArrayXd slope = (Reference(f.type, points + 1e-5) - Reference(f.type, points - 1e-5)) / 2e-5;
      const Eigen::ArrayXd far = (points.abs() > 1e-4).cast<double>();  // From the kink.
      EXPECT_LT((far * (ToArray(dx) - 2 * slope)).abs().maxCoeff(), 1e-5) << static_cast<int>(f.type);
    });
  }
}

// x s and its slope in double precision, with s = (1 + tanh u) / 2, computed without the cancellation in 1 + tanh.
struct ExactGelu {
  explicit ExactGelu(double x)
      : u(std::sqrt(M_2_PI) * (x + 0.044715 * x * x * x)),
        s(1 / (1 + std::exp(-2 * u))),
        value(x * s),
        slope(s + x * 2 * s * (1 - s) * std::sqrt(M_2_PI) * (1 + 3 * 0.044715 * x * x)) {}
  double u, s, value, slope;
};

// Tries every 4099th number and the numbers with the largest errors.
TEST(ActivationKernelTest, GeluErrorsReachTheirBounds) {
  std::vector<float> x = {3.90165329f, 4.14379311f, 4.79164505f};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    const auto word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof(value));
    if (std::abs(value) < 0x1p64f) x.push_back(value);
  }
  const std::vector<float> dy(x.size(), 1.0f);
  ForEachTarget([&] {
    const std::vector<float> y = Values({ActivationType::kGelu}, x);
    std::vector<float> dx(x.size());
    ApplyActivationGradient({ActivationType::kGelu}, static_cast<int64_t>(x.size()), x.data(), dy.data(), dx.data());
    double places = 0, relative = 0, slope = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const ExactGelu exact(x[i]);
      slope = std::max(slope, std::abs(dx[i] - exact.slope));
      const double error = std::abs(y[i] - exact.value);
      if (std::abs(exact.value) < std::numeric_limits<float>::min()) continue;
      relative = std::max(relative, error / std::abs(x[i]));
      if (x[i] > 0) places = std::max(places, error / std::ldexp(1.0, std::ilogb(exact.value) - 23));
    }
    EXPECT_LT(places, 3.1);
    EXPECT_GT(places, 3);
    EXPECT_LT(relative, 2.1e-7);
    EXPECT_GT(relative, 2e-7);
    EXPECT_LT(slope, 3.9e-6);
    EXPECT_GT(slope, 3.8e-6);
  });
}

TEST(ActivationKernelTest, GeluGradientReachesItsAsymptotes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Arguments where tanh is 1, then arguments where the cube, the square and x itself are infinite.
  std::vector<float> x = {10, 1e12f, 1e13f, 1.8e19f, 1.9e19f, 2e19f, 3e38f, kInfinity};
  for (size_t i = 0, size = x.size(); i < size; ++i) x.push_back(-x[i]);
  x.push_back(std::nanf(""));
  std::vector<float> dy(x.size(), 3.0f);
  for (size_t i = 0; i < dy.size(); i += 2) dy[i] = -0.25f;
  ForEachTarget([&] {
    ResultArray dx(static_cast<int64_t>(x.size()));
    ApplyActivationGradient(kAll[5], static_cast<int64_t>(x.size()), x.data(), dy.data(), dx.data());
    for (size_t i = 0; i + 1 < x.size(); ++i) EXPECT_EQ(dx.values()[i], x[i] > 0 ? dy[i] : 0) << x[i];
    EXPECT_TRUE(std::isnan(dx.values().back()));
  });
}

// Checks the gradient and the column sums of a matrix of each shape.
TEST(ActivationKernelTest, SumsColumnsRowByRow) {
  for (const int64_t rows : {1, 2, 4, 7, 8, 13}) {
    for (int64_t columns = 1; columns <= 140; columns += 1 + columns / 20) {
      const std::vector<float> value = RandomFloats(rows * columns, 1);
      const std::vector<float> dy = RandomFloats(rows * columns, 2);
      std::vector<float> expected(columns);
      for (int64_t i = 0; i < rows * columns; ++i) expected[i % columns] += value[i] > 0 ? dy[i] : 0;
      ForEachTarget([&] {
        ResultArray dx(rows * columns), sums(columns), plain(columns);
        ActivationGradientAndSums(kAll[1], rows, columns, value.data(), dy.data(), dx.data(), sums.data());
        ASSERT_EQ(sums.values(), absl::MakeConstSpan(expected)) << rows << " x " << columns;
        SumColumns(rows, columns, dx.data(), plain.data());
        ASSERT_EQ(plain.values(), absl::MakeConstSpan(expected)) << rows << " x " << columns;
        EXPECT_TRUE(dx.borders_intact() && sums.borders_intact() && plain.borders_intact());
      });
    }
  }
}

TEST(ActivationKernelTest, EveryTargetHasTheSameBits) {
  for (const int64_t size : {1, 3, 8, 17, 64, 75, 1000}) {
    std::vector<float> x = RandomFloats(size, size);
    const std::vector<float> dy = RandomFloats(size, size + 1);
    for (size_t i = 0; i < x.size(); i += 5) x[i] *= 30;
    x[0] = -0.0f;
    for (const ActivationKernel& f : kAll) {
      ExpectSameBitsOnEachTarget([&] { return Values(f, x); });
      ExpectSameBitsOnEachTarget([&] {
        std::vector<float> dx(size);
        ApplyActivationGradient(f, size, x.data(), dy.data(), dx.data());
        return dx;
      });
      ExpectSameBitsOnEachTarget([&] {
        std::vector<float> sum = x, y(2 * size);
        AddBiasAndActivateRows(f, 1, size, size, dy.data(), sum.data(), y.data());
        std::copy(sum.begin(), sum.end(), y.begin() + size);
        return y;
      });
    }
  }
}

TEST(ActivationKernelTest, NothingIsWrittenBehindTheLastElement) {
  ForEachTarget([] {
    for (int64_t size = 1; size < 40; ++size) {
      ResultArray y(size);
      const std::vector<float> x = RandomFloats(size, 1);
      ApplyActivation(kAll[3], size, x.data(), y.data());
      ASSERT_TRUE(y.borders_intact()) << size;
    }
  });
}

float ValueOf(const ActivationKernel& f, float x) {
  ApplyActivation(f, 1, &x, &x);
  return x;
}
float GradientOf(const ActivationKernel& f, float value, float dy) {
  ApplyActivationGradient(f, 1, &value, &dy, &dy);
  return dy;
}

// An element has the same bits when computed alone as in any row.
TEST(ActivationKernelTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(600, [](RandomCase& c) {
    const ActivationKernel& f = c.OneOf(kAll);
    const int64_t size = c.Size(0, 300);
    const std::vector<float> x = c.Numbers(size);
    const std::vector<float> dy = c.Numbers(size);
    const bool in_place = c.OneIn(2);
    float* const y = in_place ? c.InOut(x) : c.Output(size);
    ApplyActivation(f, size, in_place ? y : c.Input(x), y);
    float* const dx = in_place ? c.InOut(dy) : c.Output(size);
    ApplyActivationGradient(f, size, c.Input(x), in_place ? dx : c.Input(dy), dx);
    for (int64_t i = 0; i < size; ++i) {
      ASSERT_PRED2(SameFloats, y[i], ValueOf(f, x[i])) << i;
      ASSERT_PRED2(SameFloats, dx[i], GradientOf(f, x[i], dy[i])) << i;
    }
  });
}

TEST(ActivationKernelTest, TargetsAgreeOnRandomRowsWithBiases) {
  ForEachRandomCase(600, [](RandomCase& c) {
    const ActivationKernel& f = c.OneOf(kAll);
    const int64_t rows = c.Size(1, 20), columns = c.Size(1, 140), stride = columns + c.Between(0, 3);
    const bool in_place = c.OneIn(2), has_bias = !c.OneIn(4);
    const std::vector<float> before = c.Numbers((rows - 1) * stride + columns);
    const std::vector<float> bias = c.Numbers(columns);
    float* const sum = c.InOut(before);
    float* const y = in_place ? sum : c.Output(rows, columns, stride);
    AddBiasAndActivateRows(f, rows, columns, stride, has_bias ? c.Input(bias) : nullptr, sum, y);
    for (size_t i = 0; i < before.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % stride;
      if (column >= columns) {
        ASSERT_PRED2(SameFloats, sum[i], before[i]) << i;
        continue;
      }
      const float expected = has_bias ? before[i] + bias[column] : before[i];
      ASSERT_PRED2(SameFloats, sum[i], in_place ? ValueOf(f, expected) : expected) << i;
      ASSERT_PRED2(SameFloats, y[i], ValueOf(f, expected)) << i;
    }
  });
}

TEST(ActivationKernelTest, TargetsAgreeOnSumsOfRandomShapes) {
  ForEachRandomCase(600, [](RandomCase& c) {
    const ActivationKernel& f = c.OneOf(kAll);
    const int64_t rows = c.Size(1, 40), columns = c.Size(1, 140);
    const std::vector<float> value = c.Numbers(rows * columns);
    const std::vector<float> dy = c.Numbers(rows * columns);
    const bool in_place = c.OneIn(2), has_sums = !c.OneIn(4);
    float* const dx = in_place ? c.InOut(dy) : c.Output(rows * columns);
    float* const sums = has_sums ? c.Output(columns) : nullptr;
    float* const plain = c.Output(columns);
    ActivationGradientAndSums(f, rows, columns, c.Input(value), in_place ? dx : c.Input(dy), dx, sums);
    SumColumns(rows, columns, c.Input(dy), plain);
    std::vector<float> expected(columns), expected_plain(dy.begin(), dy.begin() + columns);
    for (int64_t i = 0; i < rows * columns; ++i) {
      const float gradient = GradientOf(f, value[i], dy[i]);
      ASSERT_PRED2(SameFloats, dx[i], gradient) << i;
      expected[i % columns] += gradient;
      if (i >= columns) expected_plain[i % columns] += dy[i];
    }
    for (int64_t i = 0; i < columns; ++i) {
      if (has_sums) {
        ASSERT_PRED2(SameFloats, sums[i], expected[i]) << i;
      }
      ASSERT_PRED2(SameFloats, plain[i], expected_plain[i]) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
