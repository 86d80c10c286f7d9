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

// An output by name (output_dict): what is computed of a model and a batch. `batch` is null where nothing is fed.
using OutputFunction = std::function<absl::StatusOr<Tensor>(RestoredModel& model, const Batch* batch)>;
using Outputs = std::map<std::string, OutputFunction>;
using OutputValues = std::map<std::string, Tensor>;

// The model's predictions, its loss (a scalar), a variable. The first two want a batch: InvalidArgument without one.
OutputFunction Predictions();
OutputFunction Loss();
OutputFunction VariableValue(std::string name);

// What outputs are computed with.
struct RunOptions {
  TrainOp op;
  // As of RestoredModel::Create.
  std::string checkpoint_path;
  FileSystem* fs = FileSystem::Real();
};

// A configured model is made for what is fed, so that the training data need not be there. Without a feed they are
// opened.

// All errors are those of RestoredModel::Create and of the outputs, which are named; InvalidArgument without outputs.

// Computes the outputs n times, each time of `feed`.
absl::StatusOr<std::vector<OutputValues>> RunN(const RunOptions& options, const Outputs& outputs,
                                               const Batch* feed = nullptr, int64_t n = 1);

// Computes them once for each batch.
absl::StatusOr<std::vector<OutputValues>> RunFeeds(const RunOptions& options, const Outputs& outputs,
                                                   absl::Span<const Batch> feeds);

// The same one by one: takes a batch from `next` until that returns OutOfRange, and gives `consumer` its outputs, whose
// error ends it.
absl::Status RunFeedsIter(const RunOptions& options, const Outputs& outputs,
                          const std::function<absl::StatusOr<Batch>()>& next,
                          const std::function<absl::Status(OutputValues)>& consumer);

// Computes them once.
absl::StatusOr<OutputValues> Infer(const RunOptions& options, const Outputs& outputs, const Batch* feed = nullptr);

}  // namespace lockstep::train::graph_actions

#endif  // LOCKSTEP_TRAIN_GRAPH_ACTIONS_RUN_OUTPUTS_H_
