#ifndef LOCKSTEP_COMMON_REPORT_JSON_TEXT_H_
#define LOCKSTEP_COMMON_REPORT_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// A JSON string with its quotes, of UTF-8 text.
std::string JsonString(absl::string_view text);

// A JSON number that reads back as the same double; null when it is not finite.
std::string JsonNumber(double value);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_REPORT_JSON_TEXT_H_
