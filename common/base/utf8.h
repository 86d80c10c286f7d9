#ifndef LOCKSTEP_COMMON_BASE_UTF8_H_
#define LOCKSTEP_COMMON_BASE_UTF8_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// Whether `text` is UTF-8 (RFC 3629).
bool IsUtf8(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_UTF8_H_
