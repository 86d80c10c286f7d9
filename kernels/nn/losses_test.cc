#include "lockstep/kernels/nn/losses.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/kernels/math.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

const ElementwiseLossKernel kElementwise[] = {{ElementwiseLossType::kSigmoidCrossEntropy, 0},
                                              {ElementwiseLossType::kSquaredError, 0},
                                              {ElementwiseLossType::kAbsoluteDifference, 0},
                                              {ElementwiseLossType::kHuber, 0.7f},
                                              {ElementwiseLossType::kHinge, 0},
                                              {ElementwiseLossType::kLogLoss, 0, 1e-7f}};

// Returns the gradient, followed by the loss.
template <typename Loss>
std::vector<float> Compute(const std::vector<float>& x, Loss loss) {
  const auto size = static_cast<int64_t>(x.size());
  ResultArray dx(size);
  const float value = loss(LossRow{size, x.data(), 0.25f, dx.data()});
  EXPECT_TRUE(dx.borders_intact()) << size;
  EXPECT_EQ(loss(LossRow{size, x.data(), 0.25f, nullptr}), value) << size;
  std::vector<float> all(dx.values().begin(), dx.values().end());
  all.push_back(value);
  return all;
}

template <typename Loss>
std::vector<float> Compute(int64_t size, Loss loss) {
  return Compute(RandomFloats(size, size), loss);
}

// Returns outputs for a loss. For the log loss, these are probabilities, because the loss would be NaN otherwise.
std::vector<float> OutputsFor(const ElementwiseLossKernel& loss, int64_t size) {
  std::vector<float> x = RandomFloats(size, size);
  if (loss.type != ElementwiseLossType::kLogLoss) return x;
  for (float& p : x) p = std::abs(p) / (1 + std::abs(p));
  return x;
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
      const std::vector<float> x = OutputsFor(loss, size);
      ExpectSameBitsOnEachTarget(
          [&] { return Compute(x, [&](const LossRow& row) { return ElementwiseLossOfLabel(loss, row, label); }); });
      ExpectSameBitsOnEachTarget([&] {
        return Compute(x, [&](const LossRow& row) { return ElementwiseLossOfTargets(loss, row, targets.data()); });
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
      const std::vector<float> x = OutputsFor(loss, size);
      ForEachTarget([&] {
        ASSERT_EQ(Compute(x, [&](const LossRow& row) { return ElementwiseLossOfLabel(loss, row, label); }),
                  Compute(x, [&](const LossRow& row) { return ElementwiseLossOfTargets(loss, row, targets.data()); }));
      });
    }
  }
}

// Adds the terms to eight sums, as eight-inl.h does.
float SumOfRow(const std::vector<float>& terms) {
  float s[8] = {};
  for (size_t i = 0; i < terms.size(); ++i) s[i % 8] += terms[i];
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

// Returns the mean of an elementwise loss and sets `dx` to its gradient, computed from rows of one element each.
float ReferenceLoss(const ElementwiseLossKernel& loss, float scale, const std::vector<float>& x,
                    const std::vector<float>& targets, std::vector<float>* dx) {
  const auto size = static_cast<float>(x.size());
  std::vector<float> losses;
  dx->resize(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    losses.push_back(ElementwiseLossOfTargets(loss, {1, &x[i], scale / size, &(*dx)[i]}, &targets[i]));
  }
  return SumOfRow(losses) / size;
}

TEST(LossesTest, TargetsAgreeOnElementwiseLosses) {
  ForEachRandomCase(1000, [](RandomCase& c) {
    ElementwiseLossKernel loss = c.OneOf(kElementwise);
    loss.delta = c.Positive(1);
    const int64_t size = c.Size(1, 300);
    const std::vector<float> x = c.Numbers(size);
    std::vector<float> targets = c.Numbers(size);
    const bool of_label = c.OneIn(2);
    // With one output, the label is the target.
    const auto label = static_cast<int32_t>(c.Between(0, size == 1 ? 1 : size - 1));
    if (of_label) {
      std::fill(targets.begin(), targets.end(), 0.0f);
      targets[size == 1 ? 0 : label] = size == 1 ? static_cast<float>(label) : 1.0f;
    }
    LossRow row{size, c.Input(x), c.Positive(1), c.OneIn(4) ? nullptr : c.Output(size)};
    const float value =
        of_label ? ElementwiseLossOfLabel(loss, row, label) : ElementwiseLossOfTargets(loss, row, c.Input(targets));
    c.Result(value);
    std::vector<float> dx;
    ASSERT_PRED2(SameFloats, value, ReferenceLoss(loss, row.scale, x, targets, &dx));
    for (int64_t i = 0; i < size && row.dx != nullptr; ++i) {
      ASSERT_PRED2(SameFloats, row.dx[i], dx[i]) << i;
    }
  });
}

float Apply(void (*f)(int64_t, const float*, float*), float x) {
  f(1, &x, &x);
  return x;
}

TEST(LossesTest, TargetsAgreeOnSoftmaxOfRandomShapes) {
  ForEachRandomCase(1000, [](RandomCase& c) {
    const int64_t size = c.Size(1, 300);
    const bool finite = c.OneIn(2), of_label = c.OneIn(2);
    const std::vector<float> x = finite ? c.FiniteNumbers(size) : c.Numbers(size);
    const std::vector<float> targets = finite ? c.FiniteNumbers(size) : c.Numbers(size);
    const auto label = static_cast<int32_t>(c.Between(0, size - 1));
    const float smoothing = c.OneIn(2) ? 0 : 0.1f;
    const LossRow row{size, c.Input(x), c.Positive(1), c.OneIn(4) ? nullptr : c.Output(size)};
    const float value =
        of_label ? SoftmaxLossOfLabel(row, smoothing, label) : SoftmaxLossOfTargets(row, smoothing, c.Input(targets));
    c.Result(value);
    if (!finite) return;
    // The header's formula, one operation at a time.
    const float largest = *std::max_element(x.begin(), x.end());
    const float offset = smoothing / static_cast<float>(size), kept = 1 - smoothing;
    std::vector<float> exponentials, distances, weights, weighed;
    for (int64_t i = 0; i < size; ++i) exponentials.push_back(Apply(ExpOf, x[i] - largest));
    const float sum = SumOfRow(exponentials), log_sum = Apply(LogOf, sum) + largest;
    for (int64_t i = 0; i < size; ++i) {
      distances.push_back(log_sum - x[i]);
      weights.push_back(targets[i] * kept + offset);
      weighed.push_back(weights[i] * distances[i]);
    }
    const float smooth = kept * distances[label] + offset * SumOfRow(distances);
    const float expected = !of_label ? SumOfRow(weighed) : smoothing == 0 ? distances[label] : smooth;
    ASSERT_PRED2(SameFloats, value, expected);
    const float factor = (of_label ? 1 : SumOfRow(weights)) / sum;
    for (int64_t i = 0; i < size && row.dx != nullptr; ++i) {
      const float all = row.scale * (exponentials[i] * factor - offset);
      const float own = of_label ? (i == label ? row.scale * kept : 0) : row.scale * kept * targets[i];
      ASSERT_PRED2(SameFloats, row.dx[i], all - own) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
