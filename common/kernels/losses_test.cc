#include "lockstep/common/kernels/losses.h"

#include <cmath>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/common/kernels/testing/each_target.h"
#include "lockstep/common/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

const ElementwiseLossKernel kElementwise[] = {{ElementwiseLossType::kSigmoidCrossEntropy, 0},
                                              {ElementwiseLossType::kSquaredError, 0},
                                              {ElementwiseLossType::kAbsoluteDifference, 0},
                                              {ElementwiseLossType::kHuber, 0.7f},
                                              {ElementwiseLossType::kHinge, 0}};

// The gradient, and behind it the loss.
template <typename Loss>
std::vector<float> Compute(int64_t size, Loss loss) {
  const std::vector<float> x = RandomFloats(size, size);
  ResultArray dx(size);
  const float value = loss(LossRow{size, x.data(), 0.25f, dx.data()});
  EXPECT_TRUE(dx.borders_intact()) << size;
  EXPECT_EQ(loss(LossRow{size, x.data(), 0.25f, nullptr}), value) << size;
  std::vector<float> all(dx.values().begin(), dx.values().end());
  all.push_back(value);
  return all;
}

TEST(LossesTest, EveryTargetHasTheSameBits) {
  for (int64_t size = 1; size <= 70; ++size) {
    const std::vector<float> targets = RandomFloats(size, 1);
    const auto label = static_cast<int32_t>(size / 2);
    for (const float smoothing : {0.0f, 0.1f}) {
      ExpectSameBitsOnEachTarget(
          [&] { return Compute(size, [&](const LossRow& row) { return SoftmaxLossOfLabel(row, smoothing, label); }); });
      ExpectSameBitsOnEachTarget([&] {
        return Compute(size, [&](const LossRow& row) { return SoftmaxLossOfTargets(row, smoothing, targets.data()); });
      });
    }
    for (const ElementwiseLossKernel& loss : kElementwise) {
      ExpectSameBitsOnEachTarget(
          [&] { return Compute(size, [&](const LossRow& row) { return ElementwiseLossOfLabel(loss, row, label); }); });
      ExpectSameBitsOnEachTarget([&] {
        return Compute(size, [&](const LossRow& row) { return ElementwiseLossOfTargets(loss, row, targets.data()); });
      });
    }
  }
}

TEST(LossesTest, SoftmaxAgreesWithEigen) {
  for (const int64_t size : {2, 10, 33}) {
    const std::vector<float> values = RandomFloats(size, size);
    const Eigen::ArrayXd x =
        Eigen::Map<const Eigen::ArrayXf>(values.data(), static_cast<Eigen::Index>(size)).cast<double>();
    const double log_sum = std::log(x.exp().sum());
    ForEachTarget([&] {
      const std::vector<float> all = Compute(size, [&](const LossRow& row) { return SoftmaxLossOfLabel(row, 0, 1); });
      EXPECT_NEAR(all[size], log_sum - x[1], 1e-6 * (1 + std::abs(log_sum)));
      for (int64_t i = 0; i < size; ++i) {
        EXPECT_NEAR(all[i], 0.25 * (std::exp(x[i] - log_sum) - (i == 1 ? 1 : 0)), 1e-7) << i;
      }
    });
  }
}

TEST(LossesTest, ALabelIsTheTargetOfItsClass) {
  for (const int64_t size : {2, 8, 9, 21}) {
    std::vector<float> targets(size);
    targets[size - 1] = 1;
    const auto label = static_cast<int32_t>(size - 1);
    for (const ElementwiseLossKernel& loss : kElementwise) {
      ForEachTarget([&] {
        ASSERT_EQ(
            Compute(size, [&](const LossRow& row) { return ElementwiseLossOfLabel(loss, row, label); }),
            Compute(size, [&](const LossRow& row) { return ElementwiseLossOfTargets(loss, row, targets.data()); }));
      });
    }
  }
}

}  // namespace
}  // namespace lockstep
