#ifndef LOCKSTEP_COMMON_REPORT_JSON_TEXT_H_
#define LOCKSTEP_COMMON_REPORT_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns UTF-8 text as a JSON string with its quotes.
std::string JsonString(absl::string_view text);

// Returns a JSON number that reads back as the same double, or null if it is not finite.
std::string JsonNumber(double value);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_REPORT_JSON_TEXT_H_
