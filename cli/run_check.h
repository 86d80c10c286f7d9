#ifndef LOCKSTEP_CLI_RUN_CHECK_H_
#define LOCKSTEP_CLI_RUN_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/io/file_system.h"
#include "proto/config.pb.h"
#include "proto/input.pb.h"
#include "worker/data/batch_source.h"
#include "worker/nn/model_summary.h"

namespace lockstep {

// What a configuration says of a run, its data opened and its model made.
struct RunCheck {
  struct Split {
    std::string name;
    DataDigest digest;
    ExampleSpec spec;
  };
  std::vector<Split> splits;
  // For the examples of "train".
  ModelSummary model;
};

// Opens every split, makes the model for each, and all else that training and evaluation will ask for, so that what is
// wrong is known before anything starts. `config` is validated and complete; `index_directory` is that of
// DatasetOptions. Errors name the field first, "model.layer[1]: ...": NotFound for a file or a registered model,
// InvalidArgument for what does not fit, DataLoss for a damaged file.
absl::StatusOr<RunCheck> CheckRun(FileSystem* fs, const RunConfig& config, const std::string& index_directory);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_RUN_CHECK_H_
