#ifndef LOCKSTEP_CLI_REPORT_RUN_CHECK_H_
#define LOCKSTEP_CLI_REPORT_RUN_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/graph/model_summary.h"

namespace lockstep {

// A configured run's properties, found by opening its data and creating its model.
struct RunCheck {
  struct Split {
    std::string name;
    // The registered input's name. Empty for built-in inputs.
    std::string registered;
    v1::DataDigest digest;
    ExampleSpec spec;
  };
  std::vector<Split> splits;
  // The model for the examples of "train".
  ModelSummary model;
  // Number of steps until the input of "train" ends, or nullopt if it never ends.
  absl::optional<int64_t> input_steps;
  // Number of batches until a worker's stream ends, or nullopt if it never ends or if all workers read one stream.
  absl::optional<int64_t> stream_batches;
  // The tensors that a warm start loads and those that it does not (see WarmStartPlan). Empty if there is no warm
  // start.
  std::string warm_start;
};

// Opens every split, and creates the model for each split and everything else that training and evaluation need, so
// that errors appear before anything starts. `config` must be validated and complete. `index_directory` is as in
// DatasetOptions. Errors begin with the field, e.g. "model.layer[1]: ...": NotFound for a missing file or a name that
// the program has not registered, InvalidArgument for a mismatch, DataLoss for a damaged file.
absl::StatusOr<RunCheck> CheckRun(FileSystem* fs, const config::v1::RunSpec& config,
                                  const std::string& index_directory);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_RUN_CHECK_H_
