#ifndef LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_
#define LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns the Levenshtein distance: the minimum number of characters to insert, remove or replace to turn one string
// into the other.
size_t EditDistance(absl::string_view a, absl::string_view b);

// Returns the candidate to suggest in "did you mean": the first one at the smallest edit distance from `name`, ignoring
// case. An abbreviation counts as close, no matter how many letters it omits. Returns an empty string if any suggestion
// would be a guess.
std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_
