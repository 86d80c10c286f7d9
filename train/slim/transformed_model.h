#ifndef LOCKSTEP_TRAIN_SLIM_TRANSFORMED_MODEL_H_
#define LOCKSTEP_TRAIN_SLIM_TRANSFORMED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/train/slim/gradients.h"
#include "lockstep/train/slim/own_update_op.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep::train::slim {

// A model that trains some variables of a base model, runs some of its update ops and the program's own, and transforms
// the gradients before they leave the worker. If the base model computes no gradient for a trainable variable, its
// gradient is zero. Use from one thread.
class TransformedModel : public Model {
 public:
  struct Options {
    // Update ops to add after the base model's own.
    std::vector<OwnUpdateOp> own_update_ops;
    // Variables to train. If absent, all trainable variables.
    absl::optional<std::vector<std::string>> variables_to_train;
    // Update ops to run, named by the variables that they change. If absent, all.
    absl::optional<std::vector<std::string>> update_ops;
    // Called in this order on all gradients of a slot together. If there are any, no gradient is passed on before the
    // last one is computed.
    std::vector<TransformGradsFn> transforms;
    // A description of the transforms, compared between workers.
    std::string description;
  };

  // Creates the model. Returns InvalidArgument for a name that is not a trainable variable, a name that no update op
  // changes, and an own update op whose variable the model already has or would train. Omitted update ops are logged.
  static absl::StatusOr<std::unique_ptr<Model>> Create(std::unique_ptr<Model> base, Options options);

  const v1::ModelSpec& spec() const override { return spec_; }
  std::vector<Part> Fingerprint() const override;
  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override;
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    return base_->Predict(BaseValues(values), batch);
  }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override {
    return base_->EvaluateLoss(BaseValues(values), batch);
  }
  absl::StatusOr<Evaluation> PredictAndEvaluateLoss(VariableValues values, const Batch& batch) override {
    return base_->PredictAndEvaluateLoss(BaseValues(values), batch);
  }

 private:
  class Sink;

  TransformedModel(std::unique_ptr<Model> base, Options options);
  absl::Status SelectVariables();
  absl::Status SelectUpdateOps();
  absl::Status AddOwnUpdateOps();
  VariableValues BaseValues(VariableValues values) const {
    return values.subspan(0, static_cast<size_t>(base_->spec().variables_size()));
  }

  const std::unique_ptr<Model> base_;
  const Options options_;
  v1::ModelSpec spec_;
  // Index in this model of each of the base model's update ops; -1 if omitted.
  std::vector<int> update_ops_;
  // Buffers for the gradients of variables that are not trained here; empty for trained ones.
  std::vector<AlignedBuffer> unused_;
};

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_TRANSFORMED_MODEL_H_
