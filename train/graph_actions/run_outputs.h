#ifndef LOCKSTEP_TRAIN_GRAPH_ACTIONS_RUN_OUTPUTS_H_
#define LOCKSTEP_TRAIN_GRAPH_ACTIONS_RUN_OUTPUTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/graph_actions/restored_model.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep::train::graph_actions {

// Computes an output of output_dict from a model and a batch. `batch` is null if nothing is fed.
using OutputFunction = std::function<absl::StatusOr<Tensor>(RestoredModel& model, const Batch* batch)>;
using Outputs = std::map<std::string, OutputFunction>;
using OutputValues = std::map<std::string, Tensor>;

// Return functions for the model's predictions, its loss (a scalar) and a variable. The functions for predictions and
// loss return InvalidArgument if there is no batch.
OutputFunction Predictions();
OutputFunction Loss();
OutputFunction VariableValue(std::string name);

// The model that computes the outputs.
struct RunOptions {
  TrainOp op;
  // The checkpoint, as in RestoredModel::Create.
  std::string checkpoint_path;
  FileSystem* fs = FileSystem::Real();
};

// The functions below create a configured model for the fed batches, so that the training data need not exist. Without
// a feed, they open the training data.

// Common errors: those of RestoredModel::Create and of the outputs, prefixed with the output's name; InvalidArgument if
// there are no outputs.

// Computes the outputs n times from `feed`.
absl::StatusOr<std::vector<OutputValues>> RunN(const RunOptions& options, const Outputs& outputs,
                                               const Batch* feed = nullptr, int64_t n = 1);

// Computes the outputs once per batch.
absl::StatusOr<std::vector<OutputValues>> RunFeeds(const RunOptions& options, const Outputs& outputs,
                                                   absl::Span<const Batch> feeds);

// Computes the outputs for one batch at a time. Takes batches from `next` until it returns OutOfRange, and passes the
// outputs of each to `consumer`, whose error ends the iteration.
absl::Status RunFeedsIter(const RunOptions& options, const Outputs& outputs,
                          const std::function<absl::StatusOr<Batch>()>& next,
                          const std::function<absl::Status(OutputValues)>& consumer);

// Computes the outputs once.
absl::StatusOr<OutputValues> Infer(const RunOptions& options, const Outputs& outputs, const Batch* feed = nullptr);

}  // namespace lockstep::train::graph_actions

#endif  // LOCKSTEP_TRAIN_GRAPH_ACTIONS_RUN_OUTPUTS_H_
