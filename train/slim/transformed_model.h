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

// A model of which some variables are trained, some update ops run beside those of the program's own, and whose
// gradients are transformed before they leave the worker. A trainable variable for which the model computes no gradient
// gets one of zeros. For one thread.
class TransformedModel : public Model {
 public:
  struct Options {
    // Added to the model's, after its own.
    std::vector<OwnUpdateOp> own_update_ops;
    // Absent: all that are trainable.
    absl::optional<std::vector<std::string>> variables_to_train;
    // By the variables that they change. Absent: all.
    absl::optional<std::vector<std::string>> update_ops;
    // In this order, over all gradients of a slot at once. With one of them no gradient leaves before the last is
    // computed.
    std::vector<TransformGradsFn> transforms;
    // What the transforms do, compared between workers.
    std::string description;
  };

  // InvalidArgument for a name that is no trainable variable, one that no update op changes, and an own update op whose
  // variable the model has already, or would train. Update ops that are left out are logged.
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
  // By the base's index; -1: left out.
  std::vector<int> update_ops_;
  // Where gradients of variables that are not trained here go; empty for the others.
  std::vector<AlignedBuffer> unused_;
};

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_TRANSFORMED_MODEL_H_
