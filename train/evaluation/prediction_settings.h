#ifndef LOCKSTEP_TRAIN_EVALUATION_PREDICTION_SETTINGS_H_
#define LOCKSTEP_TRAIN_EVALUATION_PREDICTION_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/evaluation/prediction.h"

namespace lockstep {

// Returns evaluation.class_name, the lines of evaluation.class_name_file, the label categories of a CSV split, or the
// classes of an image folder. Returns an empty list if there are none of these. Errors: those of reading the file,
// prefixed with the field's name.
absl::StatusOr<std::vector<std::string>> ClassNames(FileSystem* fs, const config::v1::RunSpec& config,
                                                    const std::string& split);

// Returns the options for writing the answers of a run's model for a split: the classes, their names, and
// `probabilities` if requested. Returns InvalidArgument if probabilities are requested but the model's loss does not
// turn its outputs into probabilities.
absl::StatusOr<PredictionOptions> PredictionOptionsOf(FileSystem* fs, const config::v1::RunSpec& config,
                                                      const std::string& split, bool probabilities);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_PREDICTION_SETTINGS_H_
