#include "lockstep/worker/nn/losses/loss_op.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// A fake loss: l_i is the sum of the outputs of example i, and the reported derivative is 1 + j for output j. The
// targets are not used.
class SumLoss : public LossOp {
 public:
  SumLoss(float weight, int64_t outputs) : LossOp(weight, outputs, /*class_labels=*/true) {}

 protected:
  float ClassRow(const float* x, int32_t, float scale, float* dx) const override { return Row(x, scale, dx); }
  float TargetRow(const float* x, const float*, float scale, float* dx) const override { return Row(x, scale, dx); }

 private:
  float Row(const float* x, float scale, float* dx) const {
    float sum = 0;
    for (int64_t j = 0; j < outputs(); ++j) {
      sum += x[j];
      if (dx != nullptr) dx[j] = scale * static_cast<float>(1 + j);
    }
    return sum;
  }
};

Batch BatchOf(int64_t size, const std::vector<float>& weights = {}) {
  Batch batch;
  batch.size = size;
  batch.labels = Tensor::FromValues<int32_t>(Shape{size}, std::vector<int32_t>(static_cast<size_t>(size), 0));
  if (!weights.empty()) batch.weights = Tensor::FromValues<float>(Shape{size}, weights);
  return batch;
}

class LossOpTest : public ::testing::Test {
 protected:
  // Also sets the gradient.
  double Compute(float weight, const Batch& batch, const std::vector<float>& outputs) {
    gradient_.assign(outputs.size(), std::nanf(""));
    SumLoss loss(weight, static_cast<int64_t>(outputs.size()) / batch.size);
    return loss.Compute(&compute_, batch, outputs.data(), gradient_.data());
  }

  ComputeContext compute_{3};
  std::vector<float> gradient_;
};

TEST_F(LossOpTest, IsTheMeanOverTheExamples) {
  EXPECT_DOUBLE_EQ(Compute(1, BatchOf(2), {1, 2, 3, 6}), 6);
  EXPECT_EQ(gradient_, (std::vector<float>{0.5f, 1, 0.5f, 1}));
}

TEST_F(LossOpTest, IsMultipliedByItsWeight) {
  EXPECT_DOUBLE_EQ(Compute(-3, BatchOf(2), {1, 2, 3, 6}), -18);
  EXPECT_EQ(gradient_, (std::vector<float>{-1.5f, -3, -1.5f, -3}));
}

TEST_F(LossOpTest, DividesByTheNumberOfWeightedExamples) {
  EXPECT_DOUBLE_EQ(Compute(1, BatchOf(4, {2, 0, 0, -1}), {5, 100, 100, 4}), (2 * 5 - 4) / 2.0);
  EXPECT_EQ(gradient_, (std::vector<float>{1, 0, 0, -0.5f}));
}

TEST_F(LossOpTest, WithoutAnyWeightItIsZero) {
  EXPECT_EQ(Compute(1, BatchOf(2, {0, 0}), {5, 6}), 0);
  EXPECT_EQ(gradient_, (std::vector<float>{0, 0}));
}

TEST_F(LossOpTest, AnUnweightedExampleAddsNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_DOUBLE_EQ(Compute(1, BatchOf(3, {1, 0, 1}), {5, nan, 7}), 6);
  EXPECT_TRUE(std::isnan(Compute(1, BatchOf(3, {1, 1, 1}), {5, nan, 7})));
  EXPECT_TRUE(std::isnan(Compute(1, BatchOf(3), {5, nan, 7})));
}

TEST_F(LossOpTest, ManyExamplesAreSeveralBlocks) {
  std::vector<float> outputs(5000 * 3);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = static_cast<float>(i % 7);
  double sum = 0;
  for (const float x : outputs) sum += x;
  EXPECT_DOUBLE_EQ(Compute(5000, BatchOf(5000), outputs), sum);
  for (size_t i = 0; i < gradient_.size(); ++i) ASSERT_EQ(gradient_[i], static_cast<float>(1 + i % 3)) << i;
}

TEST_F(LossOpTest, RowsLongerThanABlockAreBlocksOfOne) {
  EXPECT_DOUBLE_EQ(Compute(1, BatchOf(3), std::vector<float>(3 * 9000, 1.0f)), 9000);
}

TEST_F(LossOpTest, TheGradientMayBeLeftOut) {
  const std::vector<float> outputs = {1, 2, 3, 6};
  EXPECT_DOUBLE_EQ(SumLoss(1, 2).Compute(&compute_, BatchOf(2), outputs.data(), nullptr), 6);
}

}  // namespace
}  // namespace lockstep
