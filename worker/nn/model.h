#ifndef LOCKSTEP_WORKER_NN_MODEL_H_
#define LOCKSTEP_WORKER_NN_MODEL_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "proto/variable.pb.h"
#include "worker/data/batch.h"

namespace lockstep {

// Where the pseudo-random numbers of one slot come from: Philox::ForSlot(seed, "<layer name>", step, slot).
struct SlotKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t slot = 0;
};

// The current values of a model's variables, in the order of ModelSpec.variables; each
// row-major, aligned to kTensorAlignment. The memory belongs to the caller.
using VariableValues = absl::Span<const float* const>;

// Receives what a model computes for one slot. The calls come in this order, from one thread:
// OnLoss once, OnUpdate once for each update op (by index), OnGradient once for each trainable
// variable as soon as its gradient is final, usually last layer first.
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  // The mean loss of the batch, regularizers included. When this returns false nobody
  // wants the gradients any more: stop with Cancelled.
  virtual bool OnLoss(float loss) = 0;

  // The value reported for update op `index` (ModelSpec.update_ops); its variable's elements.
  virtual void OnUpdate(int index, absl::Span<const float> value) = 0;

  // Where to write the gradient of trainable variable `variable`: its elements, aligned, not
  // initialized. The same address until OnGradient(variable).
  virtual float* GradientBuffer(int variable) = 0;

  // The gradient in GradientBuffer(variable) is final.
  virtual void OnGradient(int variable) = 0;
};

// A model as the training loop sees it: declared variables, and the loss of a batch with
// its gradients. The built-in layers make one from a ModelConfig (GraphModel); a model of
// the user's own implements this and is registered (model_registry.h).
// Results must depend on the arguments alone, to the last bit, whatever the number of
// compute threads. Not thread-safe: one instance for each thread that computes.
class Model {
 public:
  virtual ~Model() = default;

  // Variables and update ops, constant; the order is the order of VariableValues and on the wire.
  virtual const ModelSpec& spec() const = 0;

  // Forward and backward pass of one slot.
  // Errors: InvalidArgument when the batch does not fit the model; Cancelled, see OnLoss.
  virtual absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                        GradientSink* sink) = 0;

  // Forward pass for evaluation (dropout off, moving averages in batch norm):
  // the output of the last layer, DT_FLOAT [size, outputs].
  virtual absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) = 0;

  // Mean loss of the batch in evaluation mode, regularizers included.
  virtual absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) = 0;

  // Both, to the same bits; a model that can does it in one forward pass.
  struct Evaluation {
    Tensor predictions;
    float loss = 0;
  };
  virtual absl::StatusOr<Evaluation> PredictAndEvaluateLoss(VariableValues values, const Batch& batch) {
    absl::StatusOr<Tensor> predictions = Predict(values, batch);
    if (!predictions.ok()) return predictions.status();
    const absl::StatusOr<float> loss = EvaluateLoss(values, batch);
    if (!loss.ok()) return loss.status();
    return Evaluation{*std::move(predictions), *loss};
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_MODEL_H_
