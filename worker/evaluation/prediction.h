#ifndef LOCKSTEP_WORKER_EVALUATION_PREDICTION_H_
#define LOCKSTEP_WORKER_EVALUATION_PREDICTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/evaluation/evaluation.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

struct PredictionOptions {
  // What the last layer gives, or the probabilities that its loss makes of them: softmax cross-entropy's sum to 1,
  // those of sigmoid cross-entropy are of one output each.
  enum class Outputs { kAsTheyAre, kSoftmax, kSigmoid };
  Outputs outputs = Outputs::kAsTheyAre;
  // The answer is a class where there are no labels that would say so.
  bool has_classes = false;
  // By class; empty: they have none.
  std::vector<std::string> class_names;
  EvaluationOptions evaluation;
};

// Writes the model's outputs for every example, in order, as comma-separated values (RFC 4180) with a header line:
//   example,label,class,class_name,output_0,output_1,...
// `label` is there when the data have labels, and these are classes; then there is `class`, too: the greatest output,
// or whether the only one is positive; `class_name` when classes have names. Probabilities are called probability_0,
// ...; the only output of a sigmoid makes two, of the classes 0 and 1. Numbers are the shortest that read back to the
// same float. The file appears when it is whole. Errors: those of the dataset, the model and the file; InvalidArgument
// for less names than classes; Cancelled.
absl::Status WritePredictions(Model* model, VariableValues values, const Dataset& dataset,
                              const PredictionOptions& options, FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_PREDICTION_H_
