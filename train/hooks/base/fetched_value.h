#ifndef LOCKSTEP_TRAIN_HOOKS_BASE_FETCHED_VALUE_H_
#define LOCKSTEP_TRAIN_HOOKS_BASE_FETCHED_VALUE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/hooks/base/hook.h"

namespace lockstep::train {

// What is called `name` of a run: "loss" (DT_DOUBLE), "global_step" (DT_INT64), else what was fetched under that name.
// Internal when it was not fetched.
absl::StatusOr<Tensor> FetchedValue(const RunValues& values, const std::string& name);

// Whether FetchedValue has it without a Fetch.
bool IsOfEveryRun(const std::string& name);

// For people: "0.5", "[1 2 3]"; of one with more than `shown` elements these and its shape. -1: all are shown.
std::string TensorText(const Tensor& tensor, int64_t shown = 8);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_FETCHED_VALUE_H_
