#ifndef LOCKSTEP_WORKER_EVALUATION_CHECKPOINT_EVALUATION_H_
#define LOCKSTEP_WORKER_EVALUATION_CHECKPOINT_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/evaluation/evaluation.h"
#include "lockstep/worker/evaluation/metrics.h"
#include "lockstep/worker/evaluation/model_values.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

struct CheckpointEvaluation {
  // The checkpoint's step.
  int64_t step = 0;
  EvaluationResult result;
};

// Loads the model's variables from the checkpoint with this prefix and evaluates them.
// Errors: NotFound if there is no such checkpoint or it lacks a variable; errors from LoadModelValues and Evaluate.
absl::StatusOr<CheckpointEvaluation> EvaluateCheckpoint(FileSystem* fs, const std::string& prefix, Model* model,
                                                        const Dataset& dataset,
                                                        std::vector<std::unique_ptr<Metric>> metrics,
                                                        const EvaluationOptions& options,
                                                        ValueSource source = ValueSource::kVariables);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_CHECKPOINT_EVALUATION_H_
