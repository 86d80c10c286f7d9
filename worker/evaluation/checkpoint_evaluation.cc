#include "lockstep/worker/evaluation/checkpoint_evaluation.h"

#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/worker/evaluation/model_values.h"

namespace lockstep {

absl::StatusOr<CheckpointEvaluation> EvaluateCheckpoint(FileSystem* fs, const std::string& prefix, Model* model,
                                                        const Dataset& dataset,
                                                        std::vector<std::unique_ptr<Metric>> metrics,
                                                        const EvaluationOptions& options, ValueSource source) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> checkpoint, BundleReader::Open(fs, prefix));
  CheckpointEvaluation evaluation;
  ASSIGN_OR_RETURN(evaluation.step, LoadGlobalStep(*checkpoint));
  ASSIGN_OR_RETURN(const ModelValues values, LoadModelValues(*checkpoint, model->spec(), source));
  ASSIGN_OR_RETURN(evaluation.result, Evaluate(model, values.view(), dataset, std::move(metrics), options));
  return evaluation;
}

}  // namespace lockstep
