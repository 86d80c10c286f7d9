#include "lockstep/train/evaluation/model_of.h"

#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep::train {
namespace {

absl::StatusOr<std::unique_ptr<Model>> MakeUntransformed(const TrainOp& op, const ExampleSpec* examples) {
  WorkloadOptions options;
  options.prefetch = false;
  if (examples != nullptr && !op.make_workload) {
    ModelOptions model;
    model.compute_threads = ComputeThreads(op.spec, options);
    return CreateModel(op.spec.model(), *examples, model);
  }
  ASSIGN_OR_RETURN(Workload workload, op.make_workload ? op.make_workload(op.spec) : LoadWorkload(op.spec, options));
  return std::move(workload.model);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const TrainOp& op, const ExampleSpec* examples) {
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, MakeUntransformed(op, examples));
  if (!op.transform_model) return model;
  return op.transform_model(std::move(model));
}

absl::StatusOr<v1::ModelSpec> ModelOf(const TrainOp& op) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, MakeModel(op));
  return model->spec();
}

}  // namespace lockstep::train
