#include "lockstep/kernels/nn/local_response.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

std::vector<double> Reference(const LocalResponse& f, int64_t columns, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t start = i / columns * columns;
    double sum = 0;
    for (int64_t j = std::max(start, i - f.radius); j <= std::min(start + columns - 1, i + f.radius); ++j) {
      sum += x[j] * x[j];
    }
    y[i] = x[i] * std::pow(f.bias + f.alpha * sum, -f.beta);
  }
  return y;
}

TEST(LocalResponseKernelTest, EveryTargetFollowsTheFormula) {
  for (const LocalResponse& f : {LocalResponse{2, 1, 0.5f, 0.75f}, LocalResponse{0, 2, 1, 0.5f},
                                 LocalResponse{5, 1, 1e-4f, 0.75f}, LocalResponse{40, 1, 1, 1}}) {
    for (const int64_t columns : {1, 3, 8, 19, 67}) {
      const int64_t rows = 3;
      const std::vector<float> x = RandomFloats(rows * columns, 1), dy = RandomFloats(rows * columns, 2);
      const auto reference = [&](const std::vector<double>& v) { return Reference(f, columns, v); };
      ForEachTarget([&] {
        ResultArray scales(x.size()), y(x.size()), dx(x.size());
        NormalizeLocalResponse(f, rows, columns, x.data(), scales.data(), y.data());
        LocalResponseGradient(f, rows, columns, x.data(), scales.data(), y.data(), dy.data(), dx.data());
        ASSERT_EQ(FirstDifference(y.values(), reference(ToDoubles(x)), 1e-5), "") << columns;
        ASSERT_EQ(FirstDifference(dx.values(), NumericGradient(ToDoubles(x), dy, reference), 1e-4), "") << columns;
        ASSERT_TRUE(scales.borders_intact() && y.borders_intact() && dx.borders_intact());
      });
    }
  }
}

TEST(LocalResponseKernelTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(300, [](RandomCase& random_case) {
    const int64_t rows = random_case.Between(1, 4), columns = random_case.Size(1, 90);
    const LocalResponse f = {random_case.Between(0, 12), random_case.Positive(1), random_case.Positive(0.1f),
                             random_case.Positive(0.75f)};
    const float* const x = random_case.Input(random_case.Numbers(rows * columns));
    const float* const dy = random_case.Input(random_case.Numbers(rows * columns));
    float* const scales = random_case.Output(rows * columns);
    float* const y = random_case.Output(rows * columns);
    NormalizeLocalResponse(f, rows, columns, x, scales, y);
    LocalResponseGradient(f, rows, columns, x, scales, y, dy, random_case.Output(rows * columns));
  });
}

}  // namespace
}  // namespace lockstep
