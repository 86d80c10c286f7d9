#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_CHECK_UPDATE_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_CHECK_UPDATE_H_

#include "absl/status/status.h"
#include "lockstep/common/tensor/elements.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// Checks the value that a model reports for update op `index`. If it does not have the variable's type
// and size, returns InvalidArgument, which names the variable and both types or sizes.
absl::Status CheckUpdate(const ParameterLayout& layout, int index, const Elements& value);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_CHECK_UPDATE_H_
