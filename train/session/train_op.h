#ifndef LOCKSTEP_TRAIN_SESSION_TRAIN_OP_H_
#define LOCKSTEP_TRAIN_SESSION_TRAIN_OP_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep::train {

// What a run trains, and how: the counterpart of a graph with its train_op. Every process of a run makes the same. A
// value.
struct TrainOp {
  // The same model, input and transforms with another configuration, in which the defaults are filled in. An op is not
  // rebuilt with CreateTrainOp, which knows nothing of transforms. Errors: those of CreateTrainOp.
  absl::StatusOr<TrainOp> WithSpec(config::v1::RunSpec other) const;

  // Model, input, optimizer, and how the run is carried out, as in a configuration file (proto/lockstep/config/v1). A
  // worker computes what the chief's says.
  config::v1::RunSpec spec;
  // Makes model and input of one's own; empty: those that `spec` describes. Every process must make the same, and the
  // batches must be a function of (step, slot).
  WorkloadFactory make_workload;
  // Makes what workers compute with out of the model, whether it is configured or of one's own; null: it is that model.
  // Every process must make the same.
  std::function<absl::StatusOr<std::unique_ptr<Model>>(std::unique_ptr<Model>)> transform_model;
};

// With the defaults filled in. Errors: InvalidArgument with one line for each problem of the configuration, before
// anything starts.
absl::StatusOr<TrainOp> CreateTrainOp(config::v1::RunSpec spec, WorkloadFactory make_workload = nullptr);

// The same from the text of a configuration.
absl::StatusOr<TrainOp> CreateTrainOp(const std::string& text);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_TRAIN_OP_H_
