#ifndef LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_OP_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_OP_H_

#include "absl/status/statusor.h"
#include "lockstep/tests/conformance/script_line.h"
#include "lockstep/train/session/train_op.h"

namespace lockstep::train {

// Returns a tiny model with endless synthetic data and no last step. input_steps=N ends the input after N steps; keep=N
// keeps N checkpoints.
absl::StatusOr<TrainOp> MakeScriptOp(const ScriptLine& line);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SCRIPT_OP_H_
