#ifndef LOCKSTEP_COMMON_TENSOR_BOOLS_H_
#define LOCKSTEP_COMMON_TENSOR_BOOLS_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns true if every byte is 0 or 1. A C++ program that reads another byte as a bool has undefined behavior.
bool AreBools(absl::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_BOOLS_H_
