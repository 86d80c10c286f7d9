#ifndef LOCKSTEP_WORKER_TRAIN_CHECKPOINT_EVALUATION_H_
#define LOCKSTEP_WORKER_TRAIN_CHECKPOINT_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/io/file_system.h"
#include "worker/data/dataset.h"
#include "worker/nn/model.h"
#include "worker/train/evaluation.h"
#include "worker/train/metrics.h"

namespace lockstep {

struct CheckpointEvaluation {
  // At which the checkpoint was made.
  int64_t step = 0;
  EvaluationResult result;
};

// Loads the model's variables from the checkpoint with this prefix and evaluates them.
// Errors: NotFound when there is no such checkpoint, or it lacks a variable; those of LoadModelValues and Evaluate.
absl::StatusOr<CheckpointEvaluation> EvaluateCheckpoint(FileSystem* fs, const std::string& prefix, Model* model,
                                                        const Dataset& dataset,
                                                        std::vector<std::unique_ptr<Metric>> metrics,
                                                        const EvaluationOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_CHECKPOINT_EVALUATION_H_
