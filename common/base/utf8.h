#ifndef LOCKSTEP_COMMON_BASE_UTF8_H_
#define LOCKSTEP_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns true if `text` is UTF-8 (RFC 3629).
bool IsUtf8(absl::string_view text);
// Returns the characters of `text` that fit into `max_bytes`. Each byte that is not part of a character becomes a
// question mark.
std::string ToUtf8(absl::string_view text, size_t max_bytes);

// Returns `text` in a form that is safe to print on a terminal. Each byte that is not part of a character, and each
// byte of a control character other than tab, is escaped, as in \x1b.
std::string Printable(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_UTF8_H_
