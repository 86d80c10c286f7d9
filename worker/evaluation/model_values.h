#ifndef LOCKSTEP_WORKER_EVALUATION_MODEL_VALUES_H_
#define LOCKSTEP_WORKER_EVALUATION_MODEL_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// The values of a model's variables, in the order of its ModelSpec. Movable; constant.
class ModelValues {
 public:
  explicit ModelValues(std::vector<Tensor> tensors);

  // Returns a view that is valid as long as this object, or the object to which it is moved, exists.
  VariableValues view() const { return pointers_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const float*> pointers_;
};

enum class ValueSource {
  kVariables,
  // The moving averages of trained variables (optimizer.moving_average), and the plain values of variables that have no
  // average, because they are in a group without averages or moving_average.variables does not select them.
  kMovingAverages,
};

// Reads the variables that `spec` declares. The checkpoint may hold more (optimizer slots).
// Errors: NotFound names a variable and the checkpoint that lacks it; InvalidArgument names both dtypes and shapes;
// DataLoss for a damaged checkpoint.
absl::StatusOr<ModelValues> LoadModelValues(const BundleReader& checkpoint, const v1::ModelSpec& spec,
                                            ValueSource source = ValueSource::kVariables);

// Returns the step of the checkpoint, its "global_step" (int64 or int32, a scalar).
absl::StatusOr<int64_t> LoadGlobalStep(const BundleReader& checkpoint);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_MODEL_VALUES_H_
