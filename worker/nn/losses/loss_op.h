#ifndef LOCKSTEP_WORKER_NN_LOSSES_LOSS_OP_H_
#define LOCKSTEP_WORKER_NN_LOSSES_LOSS_OP_H_

#include <cstdint>

#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/nn/compute/compute_context.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {

// clang-format off
// A term of a model's loss, for outputs x [batch, outputs] and labels:
//   weight * sum_i(w_i l_i) / number of examples i with w_i != 0
// w_i is the weight of example i in the batch, or 1 if the batch has none; if all weights are 0, so is the term. This
// is tf.losses' SUM_BY_NONZERO_WEIGHTS. For softmax cross-entropy, l_i is one number per example; for the elementwise
// losses it is the mean over the example's outputs j:
//
//   loss                   l
//   softmax cross-entropy  sum_j t_j (log(sum_k exp(x_k)) - x_j), t = label (1 - smoothing) + smoothing / outputs
//   sigmoid cross-entropy  max(x, 0) - x t + log(1 + exp(-|x|))
//   mean squared error     (x - t)^2
//   absolute difference    |x - t|
//   huber                  e^2 / 2 where e = |x - t| <= delta, else delta e - delta^2 / 2
//   hinge                  max(0, 1 - (2 t - 1) x), labels 0 and 1
//   log loss               -t log(x + epsilon) - (1 - t) log(1 - x + epsilon), outputs in [0, 1]
//
// Class labels stand for one-hot targets t; with one output and two classes the class itself is t.
// Not thread-safe.
// clang-format on
class LossOp {
 public:
  virtual ~LossOp() = default;

  // Returns the term's value; labels and weights of `batch` must have passed CheckLabels (loss.h). Unless `gradient` is
  // null, writes the derivative with respect to `outputs` there.
  double Compute(ComputeContext* compute, const Batch& batch, const float* outputs, float* gradient);

 protected:
  // Labels are classes, or `outputs` targets per example.
  LossOp(float weight, int64_t outputs, bool class_labels)
      : weight_(weight), outputs_(outputs), class_labels_(class_labels) {}

  // Return l for an example with outputs x and, unless `dx` is null, write scale * dl/dx there.
  virtual float ClassRow(const float* x, int32_t label, float scale, float* dx) const = 0;
  virtual float TargetRow(const float* x, const float* targets, float scale, float* dx) const = 0;

  int64_t outputs() const { return outputs_; }

 private:
  const float weight_;
  const int64_t outputs_;
  const bool class_labels_;
  // [batch]
  Workspace<float> losses_;
  Workspace<float> scales_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LOSSES_LOSS_OP_H_
