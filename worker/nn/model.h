#ifndef LOCKSTEP_WORKER_NN_MODEL_H_
#define LOCKSTEP_WORKER_NN_MODEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/base/process/instruction_set.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/data/batch.h"

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

  // The mean loss of the batch, regularizers included. When this returns false the gradients
  // are no longer wanted: stop with Cancelled.
  virtual bool OnLoss(float loss) = 0;

  // The value reported for update op `index` (ModelSpec.update_ops); its variable's elements.
  virtual void OnUpdate(int index, absl::Span<const float> value) = 0;

  // Before the first gradient, any number of times: what the chief is to write into its event file for this slot, at
  // the global step that the slot's step makes. All of a slot's together have up to 64 KiB.
  virtual void OnSummary(const v1::Summary& summary) {}

  // Before the first gradient: the run is to end when the slot's step is committed. A function of the arguments of
  // ComputeGradients alone: then every run ends at the same step.
  virtual void RequestStop() {}

  // Where to write the gradient of trainable variable `variable`: its elements, aligned, not
  // initialized. The same address until OnGradient(variable).
  virtual float* GradientBuffer(int variable) = 0;

  // The gradient in GradientBuffer(variable) is final, and its place is not the model's any more.
  virtual void OnGradient(int variable) = 0;
};

// A model as the training loop sees it: declared variables, and the loss of a batch with
// its gradients. The built-in layers make one from a ModelConfig (GraphModel); a model of
// the user's own implements this and is registered (model_registry.h).
// Results must depend on the arguments alone, to the last bit, whatever the number of
// compute threads. So exp, log, tanh and the like come from kernels/portable_math.h and not from <cmath>: the
// C library chooses among its own by its version and the processor. Not thread-safe: one instance for each thread
// that computes.
class Model {
 public:
  virtual ~Model() = default;

  // Variables and update ops, constant; the order is the order of VariableValues and on the wire.
  virtual const v1::ModelSpec& spec() const = 0;

  // What the model computes beyond what spec() says of it, part by part. A worker is refused by a run whose workers
  // have other parts, and the first one that differs is named. Override it in a model of your own: a version that you
  // raise when its results change, such as {{"my model", "2"}}. Without that only the canary tells such workers apart.
  struct Part {
    std::string name;     // for people
    std::string content;  // anything; compared by a digest
  };
  virtual std::vector<Part> Fingerprint() const { return {}; }

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
