#ifndef LOCKSTEP_WORKER_TRAIN_PREDICTION_H_
#define LOCKSTEP_WORKER_TRAIN_PREDICTION_H_

#include <string>

#include "absl/status/status.h"
#include "common/io/file_system.h"
#include "worker/data/dataset.h"
#include "worker/nn/model.h"
#include "worker/train/evaluation.h"

namespace lockstep {

// Writes the model's outputs for every example, in order, as comma-separated values with a header line:
//   example,label,class,output_0,output_1,...
// `label` and `class` (the greatest output, or whether the only one is positive) are there when labels are classes.
// Numbers are the shortest that read back to the same float. The file appears when it is whole.
// Errors: those of the dataset, the model and the file; Cancelled.
absl::Status WritePredictions(Model* model, VariableValues values, const Dataset& dataset,
                              const EvaluationOptions& options, FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_PREDICTION_H_
