#include "lockstep/train/graph_actions/restored_model.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/server/ps/initializer.h"
#include "lockstep/train/evaluation/model_of.h"

namespace lockstep::train::graph_actions {
namespace {

absl::StatusOr<ModelValues> InitialValues(const v1::ModelSpec& spec, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (const v1::VariableSpec& variable : spec.variables()) {
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Create({variable.shape().data(), static_cast<size_t>(variable.shape_size())}));
    Tensor tensor(VariableType(variable.dtype()), shape);
    InitializeVariable(variable, seed, absl::MakeSpan(tensor.data(), tensor.bytes().size()));
    tensors.push_back(std::move(tensor));
  }
  return ModelValues(std::move(tensors));
}

}  // namespace

RestoredModel::RestoredModel(std::unique_ptr<Model> model, ModelValues values, int64_t global_step)
    : model_(std::move(model)), values_(std::move(values)), global_step_(global_step) {}

absl::StatusOr<std::unique_ptr<RestoredModel>> RestoredModel::Create(const TrainOp& op,
                                                                     const std::string& checkpoint_path, FileSystem* fs,
                                                                     const ExampleSpec* examples) {
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, MakeModel(op, examples));
  if (checkpoint_path.empty()) {
    ASSIGN_OR_RETURN(ModelValues values, InitialValues(model->spec(), op.spec.training().seed()));
    return absl::WrapUnique(new RestoredModel(std::move(model), std::move(values), 0));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> checkpoint, BundleReader::Open(fs, checkpoint_path));
  ASSIGN_OR_RETURN(ModelValues values, LoadModelValues(*checkpoint, model->spec()));
  ASSIGN_OR_RETURN(const int64_t global_step, LoadGlobalStep(*checkpoint));
  return absl::WrapUnique(new RestoredModel(std::move(model), std::move(values), global_step));
}

absl::StatusOr<Tensor> RestoredModel::Variable(const std::string& name) const {
  for (int i = 0; i < model_->spec().variables_size(); ++i) {
    if (model_->spec().variables(i).name() == name) return values_.tensors()[i];
  }
  return absl::InvalidArgumentError(absl::StrCat("the model has no variable ", name));
}

}  // namespace lockstep::train::graph_actions
