#ifndef LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_
#define LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

// Levenshtein's: the letters that are inserted, removed or replaced to make one of the other.
size_t EditDistance(absl::string_view a, absl::string_view b);

// Returns the candidate to suggest in "did you mean": the one at the smallest edit distance from `name`, ignoring case;
// an abbreviation is close however many letters it leaves out. Ties go to the first. Empty when every candidate would
// be a guess.
std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_NEAREST_NAME_H_
