#ifndef LOCKSTEP_KERNELS_NN_LOSSES_H_
#define LOCKSTEP_KERNELS_NN_LOSSES_H_

#include <cstdint>

namespace lockstep {

// The outputs x [size] of one example. Unless `dx` is null, scale times the loss's derivative is written there.
struct LossRow {
  int64_t size = 0;
  const float* x = nullptr;
  float scale = 0;
  float* dx = nullptr;
};

// sum_j t_j (log(sum_k exp(x_k)) - x_j), with t = target (1 - smoothing) + smoothing / size; a label is the target 1 of
// its class, and 0 of the others. Sums along the row are those of eight-inl.h.
float SoftmaxLossOfLabel(const LossRow& row, float smoothing, int32_t label);
float SoftmaxLossOfTargets(const LossRow& row, float smoothing, const float* targets);

enum class ElementwiseLossType { kSigmoidCrossEntropy, kSquaredError, kAbsoluteDifference, kHuber, kHinge };

// worker/nn/losses/loss_op.h has the formulas; kHuber alone reads `delta`.
struct ElementwiseLossKernel {
  ElementwiseLossType type = ElementwiseLossType::kSquaredError;
  float delta = 0;
};

// The mean of the losses of the row's outputs. A label is the target 1 of its class, or the only target where there is
// one output.
float ElementwiseLossOfLabel(const ElementwiseLossKernel& loss, const LossRow& row, int32_t label);
float ElementwiseLossOfTargets(const ElementwiseLossKernel& loss, const LossRow& row, const float* targets);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_LOSSES_H_
