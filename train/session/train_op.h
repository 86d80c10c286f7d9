#ifndef LOCKSTEP_TRAIN_SESSION_TRAIN_OP_H_
#define LOCKSTEP_TRAIN_SESSION_TRAIN_OP_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep::train {

// The model that a run trains, and the way to train it: the counterpart of a graph with its train_op. All processes of
// a run must make the same. A value.
struct TrainOp {
  // Returns this model, input and transforms with another configuration, in which the defaults are filled in.
  // CreateTrainOp cannot rebuild an op, because it knows nothing of transforms. Errors: those of CreateTrainOp.
  absl::StatusOr<TrainOp> WithSpec(config::v1::RunSpec other) const;

  // The model, input and optimizer, and the options of the run, as in a configuration file (proto/lockstep/config/v1).
  // Workers compute what the chief's configuration says.
  config::v1::RunSpec spec;
  // Makes the program's own model and input. If empty, those that `spec` describes are used. All processes must make
  // the same, and the batches must be a function of (step, slot).
  WorkloadFactory make_workload;
  // Makes the model that workers compute with from the configured one or the program's own. If null, they compute with
  // that one. All processes must make the same.
  std::function<absl::StatusOr<std::unique_ptr<Model>>(std::unique_ptr<Model>)> transform_model;
};

// Returns an op with the defaults filled in. Errors: InvalidArgument with one line for each problem of the
// configuration, before anything starts.
absl::StatusOr<TrainOp> CreateTrainOp(config::v1::RunSpec spec, WorkloadFactory make_workload = nullptr);

// Creates an op from the text of a configuration.
absl::StatusOr<TrainOp> CreateTrainOp(const std::string& text);

// Checks the argument of a Run of the session that was opened with `opened`. InvalidArgument if `op` has another model,
// or if only one of the two has a make_workload or transform_model. An op without a model may be any.
absl::Status CheckSameOp(const TrainOp& opened, const TrainOp& op);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_TRAIN_OP_H_
