#ifndef LOCKSTEP_KERNELS_NN_LOSSES_H_
#define LOCKSTEP_KERNELS_NN_LOSSES_H_

#include <cstdint>

namespace lockstep {

// The outputs x [size] of one example. Unless it is null, `dx` receives scale times the loss's derivative.
struct LossRow {
  int64_t size = 0;
  const float* x = nullptr;
  float scale = 0;
  float* dx = nullptr;
};

// Return sum_j t_j (log(sum_k exp(x_k)) - x_j), with t = target (1 - smoothing) + smoothing / size. A label means a
// target of 1 for its class and 0 for the others. Sums along the row are computed as in eight-inl.h.
float SoftmaxLossOfLabel(const LossRow& row, float smoothing, int32_t label);
float SoftmaxLossOfTargets(const LossRow& row, float smoothing, const float* targets);

enum class ElementwiseLossType { kSigmoidCrossEntropy, kSquaredError, kAbsoluteDifference, kHuber, kHinge, kLogLoss };

// An elementwise loss. worker/nn/losses/loss_op.h has the formulas. Only kHuber reads `delta`, and only kLogLoss reads
// `epsilon`.
struct ElementwiseLossKernel {
  ElementwiseLossType type = ElementwiseLossType::kSquaredError;
  float delta = 0;
  float epsilon = 0;
};

// Return the mean loss over the row's outputs. A label means a target of 1 for its class and 0 for the others. With one
// output, the label itself is the target.
float ElementwiseLossOfLabel(const ElementwiseLossKernel& loss, const LossRow& row, int32_t label);
float ElementwiseLossOfTargets(const ElementwiseLossKernel& loss, const LossRow& row, const float* targets);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_LOSSES_H_
