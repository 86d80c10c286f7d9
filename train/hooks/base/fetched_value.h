#ifndef LOCKSTEP_TRAIN_HOOKS_BASE_FETCHED_VALUE_H_
#define LOCKSTEP_TRAIN_HOOKS_BASE_FETCHED_VALUE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/hooks/base/hook.h"

namespace lockstep::train {

// Returns the value of `name` in a run: "loss" (DT_DOUBLE) or "global_step" (DT_INT64) of its result, or else the value
// that was fetched under that name. Returns Internal if it was not fetched.
absl::StatusOr<Tensor> FetchedValue(const RunValues& values, const std::string& name);

// Returns true if every run has a value with this name, so that FetchedValue needs no Fetch.
bool IsOfEveryRun(const std::string& name);

// Formats a tensor for display: "0.5", "[1 2 3]". If it has more than `shown` elements, shows only the first `shown`
// and its shape; -1 shows all.
std::string TensorText(const Tensor& tensor, int64_t shown = 8);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_FETCHED_VALUE_H_
