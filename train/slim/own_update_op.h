#ifndef LOCKSTEP_TRAIN_SLIM_OWN_UPDATE_OP_H_
#define LOCKSTEP_TRAIN_SLIM_OWN_UPDATE_OP_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep::train::slim {

// A program's own update op, in addition to those of the model, like those in tf-slim's update_ops and the collection
// UPDATE_OPS. A value type.
struct OwnUpdateOp {
  // The name, dtype (DT_FLOAT only), shape and initializer. The variable is not trained, and no other update op changes
  // it.
  v1::VariableSpec variable;
  // The operation by which the chief folds the slots' values into the variable, in slot order.
  v1::UpdateOpSpec::Kind kind = v1::UpdateOpSpec::ASSIGN;
  // The decay of MOVING_AVERAGE, in [0, 1].
  float decay = 0;
  // If true, a MOVING_AVERAGE starts at 0 and is corrected for it (UpdateOpSpec.zero_debias).
  bool zero_debias = false;
  // Returns the value of one slot, with as many elements as the variable has, row-major. The value must depend on the
  // arguments alone, bit for bit. `values` are the values before the step, in the order of ModelOf.
  std::function<absl::StatusOr<std::vector<float>>(VariableValues values, const Batch& batch, const SlotKey& key)>
      value;
};

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_OWN_UPDATE_OP_H_
