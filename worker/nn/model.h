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
#include "lockstep/common/tensor/elements.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep {

// Identifies a slot's pseudo-random numbers, which are those of Philox::ForSlot(seed, "<layer name>", step, slot).
struct SlotKey {
  uint64_t seed = 0;
  int64_t step = 0;  // or the position in an input stream
  int64_t slot = 0;  // or the number of the stream
};

// The current values of a model's variables, in the order of ModelSpec.variables. Each is row-major and aligned to
// kTensorAlignment. The caller owns the memory. ValueAs reads a variable that is not float32.
using VariableValues = absl::Span<const float* const>;

// Returns the elements of an untrained variable of type int32, int64, uint8 or bool. `T` must be its type.
template <typename T>
const T* ValueAs(VariableValues values, int variable) {
  return reinterpret_cast<const T*>(values[variable]);
}

// A receiver of the results of a model for one slot. The calls come in this order, from one thread: OnLoss once,
// OnUpdate once for each update op (by index), and OnGradient once for each trainable variable as soon as its gradient
// is final, usually for the last layer first.
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  // Reports the batch's mean loss, including regularizers. If this returns false, the gradients are no longer needed,
  // and the model must stop with Cancelled.
  virtual bool OnLoss(float loss) = 0;

  // Sets the slot's weight in its step, such as its number of tokens. It must be at least 0 and defaults to 1. Called
  // at most once, before the first gradient. The gradients must remain those of the mean loss: the sink multiplies them
  // by the weight, and the chief divides the step's sum by the sum of all weights. A sink that wraps another sink must
  // forward the call (ForwardingSink). With compression.gradients: FLOAT16, a product or a sum of products beyond 65504
  // becomes 65504 without an error.
  virtual void OnWeight(float weight) {}

  // Reports the value of update op `index` (ModelSpec.update_ops). It has the type of the op's variable, and as many
  // elements.
  virtual void OnUpdate(int index, Elements value) = 0;

  // Adds values that the chief writes to its event file for this slot, at the global step that the slot's step
  // produces. May be called any number of times before the first gradient. A slot's summaries and metrics may take up
  // to 64 KiB in total, plus the space that histograms and norms of all gradients may take. Drops a summary that would
  // exceed this limit and returns ResourceExhausted with both numbers.
  virtual absl::Status OnSummary(const v1::Summary& summary) { return absl::OkStatus(); }

  // Reports a human-readable metric, such as an accuracy. The chief shows its mean over the slots of a step, weighted
  // by the slots' weights, and writes it to its event file whenever it writes the loss. Called like OnSummary, with the
  // same errors.
  virtual absl::Status OnMetric(const std::string& name, float value) { return absl::OkStatus(); }

  // Requests that the run end when the slot's step is committed. Called before the first gradient. Whether a model
  // calls it must depend only on the arguments of ComputeGradients, so that every run ends at the same step.
  virtual void RequestStop() {}

  // Returns the aligned, uninitialized buffer for the gradient of trainable variable `variable`. The address stays the
  // same until OnGradient(variable).
  virtual float* GradientBuffer(int variable) = 0;

  // Announces that the gradient in GradientBuffer(variable) is final. The model must not access the buffer afterwards.
  virtual void OnGradient(int variable) = 0;
};

// Forwards every call to another sink. The base of sinks that change some of the calls.
class ForwardingSink : public GradientSink {
 public:
  // `sink` must outlive this object.
  explicit ForwardingSink(GradientSink* sink) : sink_(sink) {}

  bool OnLoss(float loss) override { return sink_->OnLoss(loss); }
  void OnWeight(float weight) override { sink_->OnWeight(weight); }
  void OnUpdate(int index, Elements value) override { sink_->OnUpdate(index, value); }
  absl::Status OnSummary(const v1::Summary& summary) override { return sink_->OnSummary(summary); }
  absl::Status OnMetric(const std::string& name, float value) override { return sink_->OnMetric(name, value); }
  void RequestStop() override { sink_->RequestStop(); }
  float* GradientBuffer(int variable) override { return sink_->GradientBuffer(variable); }
  void OnGradient(int variable) override { sink_->OnGradient(variable); }

 protected:
  GradientSink* sink() const { return sink_; }

 private:
  GradientSink* const sink_;
};

// A model as the training loop sees it: its variables, and the loss of a batch with its gradients. The built-in layers
// form a model that is configured by a ModelConfig (GraphModel). Users implement this class for their own models and
// register them (model_registry.h). Results must depend only on the arguments, to the last bit, whatever the number of
// compute threads. Therefore, use exp, log, tanh and the like from kernels/portable_math.h instead of <cmath>, whose
// implementation depends on the C library's version and the processor. Not thread-safe: use one instance per computing
// thread.
class Model {
 public:
  virtual ~Model() = default;

  // Returns the variables and the update ops, which never change. VariableValues and the wire format use the same
  // order.
  virtual const v1::ModelSpec& spec() const = 0;

  // A part of the computation that spec() does not cover. A run rejects a worker whose parts differ from those of its
  // other workers, and names the first part that differs. Override Fingerprint in your own model to return a version
  // that you increase when its results change, such as {{"my model", "2"}}. Otherwise, only the canary distinguishes
  // such workers.
  struct Part {
    std::string name;     // for people
    std::string content;  // anything; compared by a digest
  };
  virtual std::vector<Part> Fingerprint() const { return {}; }

  // Runs the forward and backward pass of one slot.
  //
  // Errors: InvalidArgument if the batch does not fit the model; Cancelled if OnLoss returned false.
  virtual absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                        GradientSink* sink) = 0;

  // Runs the forward pass for evaluation (dropout off, moving averages in batch norm) and returns the output of the
  // last layer, DT_FLOAT [size, outputs].
  virtual absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) = 0;

  // Returns the mean loss of the batch in evaluation mode, regularizers included.
  virtual absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) = 0;

  // The results of Predict and EvaluateLoss, identical to the last bit. Models that can compute both in one forward
  // pass do so.
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
