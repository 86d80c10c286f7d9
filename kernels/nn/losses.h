#ifndef LOCKSTEP_KERNELS_NN_LOSSES_H_
#define LOCKSTEP_KERNELS_NN_LOSSES_H_

#include <cstdint>

namespace lockstep {

// The outputs x [size] of one example. Unless `dx` is null, it receives scale times the loss's derivative.
struct LossRow {
  int64_t size = 0;
  const float* x = nullptr;
  float scale = 0;
  float* dx = nullptr;
};

// sum_j t_j (log(sum_k exp(x_k)) - x_j), with t = target (1 - smoothing) + smoothing / size. A label is the target 1
// for its class and 0 for the others. Sums along the row follow eight-inl.h.
float SoftmaxLossOfLabel(const LossRow& row, float smoothing, int32_t label);
float SoftmaxLossOfTargets(const LossRow& row, float smoothing, const float* targets);

enum class ElementwiseLossType { kSigmoidCrossEntropy, kSquaredError, kAbsoluteDifference, kHuber, kHinge, kLogLoss };

// worker/nn/losses/loss_op.h has the formulas; only kHuber reads `delta`, only kLogLoss
// `epsilon`.
struct ElementwiseLossKernel {
  ElementwiseLossType type = ElementwiseLossType::kSquaredError;
  float delta = 0;
  float epsilon = 0;
};

// The mean of the losses of the row's outputs. A label is the target 1 of its class; if there is one output, the label
// is its target.
float ElementwiseLossOfLabel(const ElementwiseLossKernel& loss, const LossRow& row, int32_t label);
float ElementwiseLossOfTargets(const ElementwiseLossKernel& loss, const LossRow& row, const float* targets);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_LOSSES_H_
