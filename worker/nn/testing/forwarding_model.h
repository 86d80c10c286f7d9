#ifndef LOCKSTEP_WORKER_NN_TESTING_FORWARDING_MODEL_H_
#define LOCKSTEP_WORKER_NN_TESTING_FORWARDING_MODEL_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// Forwards every call to another model. The base of models that change some of the calls.
class ForwardingModel : public Model {
 public:
  explicit ForwardingModel(std::unique_ptr<Model> model) : model_(std::move(model)) {}

  const v1::ModelSpec& spec() const override { return model_->spec(); }
  std::vector<Part> Fingerprint() const override { return model_->Fingerprint(); }
  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    return model_->ComputeGradients(values, batch, key, sink);
  }
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    return model_->Predict(values, batch);
  }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override {
    return model_->EvaluateLoss(values, batch);
  }

 private:
  const std::unique_ptr<Model> model_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TESTING_FORWARDING_MODEL_H_
