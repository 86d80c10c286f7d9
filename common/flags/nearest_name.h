#ifndef LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_
#define LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

// Levenshtein's: the letters that are inserted, removed or replaced to make one of the other.
size_t EditDistance(absl::string_view a, absl::string_view b);

// For "did you mean": the candidate that is written most like `name` (fewest letters inserted, removed or
// replaced; letter case aside, and a shortened name is near, however much is left out). The first of several
// equals. Empty when every candidate would be a guess.
std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_
