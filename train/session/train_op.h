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

// The model that a run trains, and how to train it: the counterpart of a graph with its train_op. All processes of a
// run must create the same op. A value type.
struct TrainOp {
  // Returns this model, input and transforms with a different configuration, filling in its defaults. The session fills
  // in those of training.first_arrivals, because a program may still choose replicas_to_aggregate. CreateTrainOp cannot
  // rebuild an op, because it does not know the transforms. Errors: those of CreateTrainOp.
  absl::StatusOr<TrainOp> WithSpec(config::v1::RunSpec other) const;

  // The model, input, optimizer and options of the run, as in a configuration file (proto/lockstep/config/v1). Workers
  // follow the chief's configuration.
  config::v1::RunSpec spec;
  // Creates the program's own model and input. If null, those described by `spec` are used. All processes must create
  // the same ones, and each batch must be a function of (step, slot).
  WorkloadFactory make_workload;
  // Transforms the configured model, or the program's own, into the model that workers compute with. If null, they use
  // it unchanged. All processes must produce the same model.
  std::function<absl::StatusOr<std::unique_ptr<Model>>(std::unique_ptr<Model>)> transform_model;
};

// Returns an op with the defaults filled in, as WithSpec does. Returns InvalidArgument with one line for each problem
// in the configuration.
absl::StatusOr<TrainOp> CreateTrainOp(config::v1::RunSpec spec, WorkloadFactory make_workload = nullptr);

// Creates an op from a configuration's text.
absl::StatusOr<TrainOp> CreateTrainOp(const std::string& text);

// Checks the argument of Run in a session opened with `opened`. Returns InvalidArgument if `op` has a different model,
// or if only one of the two has a make_workload or transform_model. Accepts any op without a model. The second overload
// does not check the op at `*last` again, and sets `*last` to an op that it accepts.
absl::Status CheckSameOp(const TrainOp& opened, const TrainOp& op);
absl::Status CheckSameOp(const TrainOp& opened, const TrainOp& op, const TrainOp** last);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_TRAIN_OP_H_
