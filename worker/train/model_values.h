#ifndef LOCKSTEP_WORKER_TRAIN_MODEL_VALUES_H_
#define LOCKSTEP_WORKER_TRAIN_MODEL_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/tensor/tensor.h"
#include "proto/variable.pb.h"
#include "worker/nn/model.h"

namespace lockstep {

// The values of a model's variables, in the order of its ModelSpec. Movable; constant.
class ModelValues {
 public:
  explicit ModelValues(std::vector<Tensor> tensors);

  // Lives as long as this object, and wherever it is moved.
  VariableValues view() const { return pointers_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const float*> pointers_;
};

// Reads the variables that `spec` declares. The checkpoint may hold more (optimizer slots).
// Errors: NotFound names a variable and the checkpoint that lacks it; InvalidArgument names both dtypes and shapes;
// DataLoss for a damaged checkpoint.
absl::StatusOr<ModelValues> LoadModelValues(const BundleReader& checkpoint, const ModelSpec& spec);

// The step at which the checkpoint was made, its "global_step" (int64 or int32, a scalar).
absl::StatusOr<int64_t> LoadGlobalStep(const BundleReader& checkpoint);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_MODEL_VALUES_H_
