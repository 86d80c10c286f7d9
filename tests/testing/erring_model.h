#ifndef LOCKSTEP_TESTS_TESTING_ERRING_MODEL_H_
#define LOCKSTEP_TESTS_TESTING_ERRING_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/worker/nn/model.h"

namespace lockstep {

// Computes like another model, except that in slots for which `errs` returns true, it changes the last bit of one
// element of the last trainable variable's gradient. Simulates a processor, memory or library that differs from the
// others.
class ErringModel : public Model {
 public:
  ErringModel(std::unique_ptr<Model> model, std::function<bool(const SlotKey&)> errs)
      : model_(std::move(model)), errs_(std::move(errs)) {}

  const v1::ModelSpec& spec() const override { return model_->spec(); }
  std::vector<Part> Fingerprint() const override { return model_->Fingerprint(); }
  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override;
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    return model_->Predict(values, batch);
  }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override {
    return model_->EvaluateLoss(values, batch);
  }

 private:
  const std::unique_ptr<Model> model_;
  const std::function<bool(const SlotKey&)> errs_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_ERRING_MODEL_H_
