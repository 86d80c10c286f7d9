#ifndef LOCKSTEP_SERVER_PS_NON_FINITE_VALUE_H_
#define LOCKSTEP_SERVER_PS_NON_FINITE_VALUE_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"

namespace lockstep {

// A value of a step that is NaN or infinite.
struct NonFiniteValue {
  std::string what;              // "loss", "update of mean", "gradient of w"
  absl::optional<int64_t> slot;  // absent for a gradient and for a mean
  bool contributed = true;       // false: no contribution caused it
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_NON_FINITE_VALUE_H_
