#ifndef LOCKSTEP_TRAIN_TESTING_HANGING_MODEL_H_
#define LOCKSTEP_TRAIN_TESTING_HANGING_MODEL_H_

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/worker/nn/model.h"

namespace lockstep::train {

// A model that computes like another one until it reaches a block in which it sends its process SIGTERM and never
// returns. The computing thread must block SIGTERM.
class HangingModel : public Model {
 public:
  // Hangs in the block after the first `blocks`.
  HangingModel(std::unique_ptr<Model> model, int blocks) : model_(std::move(model)), blocks_left_(blocks) {}

  const v1::ModelSpec& spec() const override { return model_->spec(); }
  std::vector<Part> Fingerprint() const override { return model_->Fingerprint(); }
  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    if (blocks_left_-- > 0) return model_->ComputeGradients(values, batch, key, sink);
    kill(getpid(), SIGTERM);
    while (true) pause();
  }
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    return model_->Predict(values, batch);
  }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override {
    return model_->EvaluateLoss(values, batch);
  }

 private:
  const std::unique_ptr<Model> model_;
  std::atomic<int> blocks_left_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_TESTING_HANGING_MODEL_H_
