#ifndef LOCKSTEP_TRAIN_SESSION_INIT_INIT_OP_H_
#define LOCKSTEP_TRAIN_SESSION_INIT_INIT_OP_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/train/saver/assign_from.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/session/choice.h"

namespace lockstep::train {

// Returns the program's own initial values, computed from init_feed_dict.
using InitOp = std::function<absl::StatusOr<InitialValues>(const v1::ModelSpec& model,
                                                           absl::Span<const NamedTensor> init_feed_dict)>;

// Returns a function that calls `init_op`, if given, and then `init_fn`, whose values take precedence; null if there is
// neither. Returns InvalidArgument if there are inputs but no init_op.
absl::StatusOr<InitFunction> InitFunctionOf(const Choice<InitOp>& init_op, std::vector<NamedTensor> init_feed_dict,
                                            InitFunction init_fn);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_INIT_INIT_OP_H_
