#ifndef LOCKSTEP_WORKER_NN_LOSS_OP_H_
#define LOCKSTEP_WORKER_NN_LOSS_OP_H_

#include <cstdint>

#include "worker/data/batch.h"
#include "worker/nn/compute_context.h"
#include "worker/nn/workspace.h"

namespace lockstep {

// One term of a model's loss, of outputs x [batch, outputs] and labels:
//   weight * sum_i(w_i l_i) / number of examples i with w_i != 0
// w_i is the weight of example i in the batch, 1 where the batch has none; without such examples the term
// is 0. This is tf.losses' SUM_BY_NONZERO_WEIGHTS. l_i of softmax cross-entropy is one number for an example;
// for the elementwise losses it is the mean over the example's outputs j:
//   softmax cross-entropy  sum_j t_j (log(sum_k exp(x_k)) - x_j), t = label (1 - label_smoothing) + label_smoothing /
//   outputs sigmoid cross-entropy  max(x, 0) - x t + log(1 + exp(-|x|)) mean squared error     (x - t)^2 absolute
//   difference    |x - t| huber                  e^2 / 2 where e = |x - t| <= delta, else delta e - delta^2 / 2 hinge
//   max(0, 1 - (2 t - 1) x), labels 0 and 1
// Class labels stand for one-hot targets t; with one output and two classes the class itself is t.
// Not thread-safe.
class LossOp {
 public:
  virtual ~LossOp() = default;

  // The term's value; labels and weights of `batch` have passed CheckLabels (loss.h). Unless `gradient` is null, writes
  // the derivative by `outputs` there.
  double Compute(ComputeContext* compute, const Batch& batch, const float* outputs, float* gradient);

 protected:
  LossOp(float weight, int64_t outputs) : weight_(weight), outputs_(outputs) {}

  // For example i: losses[i] = l_i and, unless `gradient` is null, its row there = scales[i] dl_i/dx.
  struct Rows {
    int64_t begin;
    int64_t end;
    const float* outputs;
    const float* scales;
    float* losses;
    float* gradient;
  };
  virtual void ComputeRows(const Batch& batch, const Rows& rows) = 0;

  int64_t outputs() const { return outputs_; }

 private:
  const float weight_;
  const int64_t outputs_;
  // [batch]
  Workspace<float> losses_;
  Workspace<float> scales_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LOSS_OP_H_
