#ifndef LOCKSTEP_TRAIN_GRAPH_ACTIONS_RESTORED_MODEL_H_
#define LOCKSTEP_TRAIN_GRAPH_ACTIONS_RESTORED_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/evaluation/model_values.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep::train::graph_actions {

// The model of a TrainOp with the values of one checkpoint. Computes its outputs for batches, like a session into which
// a graph was restored. Not thread-safe.
class RestoredModel {
 public:
  // Creates the model. `checkpoint_path` is a checkpoint's prefix; if empty, the values are the initial ones (global
  // step 0) that the op's seed determines. `fs` holds the checkpoint, but not the op's data. A model from the
  // configuration is created for `examples` or, if that is null, for the training data, which are then opened. Errors:
  // NotFound if there is no such checkpoint, or if it lacks a variable of the model; DataLoss if it is damaged; those
  // of MakeModel.
  static absl::StatusOr<std::unique_ptr<RestoredModel>> Create(const TrainOp& op, const std::string& checkpoint_path,
                                                               FileSystem* fs = FileSystem::Real(),
                                                               const ExampleSpec* examples = nullptr);

  // Each calls the Model method of the same name with the restored values. Outputs are DT_FLOAT [size, outputs]; the
  // loss is the mean over the batch.
  absl::StatusOr<Tensor> Predict(const Batch& batch) { return model_->Predict(values_.view(), batch); }
  absl::StatusOr<float> EvaluateLoss(const Batch& batch) { return model_->EvaluateLoss(values_.view(), batch); }
  absl::StatusOr<Model::Evaluation> PredictAndEvaluateLoss(const Batch& batch) {
    return model_->PredictAndEvaluateLoss(values_.view(), batch);
  }
  // Returns the value of a variable. Returns InvalidArgument if there is no variable with this name.
  absl::StatusOr<Tensor> Variable(const std::string& name) const;
  int64_t global_step() const { return global_step_; }

 private:
  RestoredModel(std::unique_ptr<Model> model, ModelValues values, int64_t global_step);

  const std::unique_ptr<Model> model_;
  const ModelValues values_;
  const int64_t global_step_;
};

}  // namespace lockstep::train::graph_actions

#endif  // LOCKSTEP_TRAIN_GRAPH_ACTIONS_RESTORED_MODEL_H_
