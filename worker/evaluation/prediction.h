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
  // The last layer's outputs, or the probabilities that its loss derives from them. Probabilities of softmax
  // cross-entropy sum to 1. Sigmoid cross-entropy has an independent probability for each output.
  enum class Outputs { kAsTheyAre, kSoftmax, kSigmoid };
  Outputs outputs = Outputs::kAsTheyAre;
  // True if the model predicts a class. Used only if the data has no labels.
  bool has_classes = false;
  // A single output predicts class 1 if it is above this threshold.
  float class_threshold = 0;
  // Indexed by class. If empty, classes have no names.
  std::vector<std::string> class_names;
  EvaluationOptions evaluation;
};

// Writes the model's outputs for every row (Dataset::RowAt), in order, as comma-separated values (RFC 4180) with a
// header line:
//   example,ID,label,class,class_name,output_0,output_1,...
// `example` is the row's number in the files; a row without an example has nothing after its number and identifier. ID
// stands for the column that identifies rows, if there is one: its name in the header, its text in the rows. `label` is
// present if the data has labels that are classes. `class` is present if `label` is, or if the data has no labels and
// the model predicts a class: it is the index of the greatest output or, for a single output, 1 if it is above
// class_threshold. `class_name` is present if classes have names. Probabilities are called probability_0, ...; a single
// sigmoid output yields two, for classes 0 and 1. Each number is the shortest that reads back as the same float. The
// file appears only when it is complete.
// Errors: any from the dataset, the model and the file; InvalidArgument if there are fewer names than classes;
// Cancelled.
absl::Status WritePredictions(Model* model, VariableValues values, const Dataset& dataset,
                              const PredictionOptions& options, FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_PREDICTION_H_
