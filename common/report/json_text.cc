#include "lockstep/common/report/json_text.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace lockstep {

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", c);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  // Find the shortest representation that reads back exactly.
  for (int digits = 6;; ++digits) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double parsed = 0;
    if (digits >= 17 || (absl::SimpleAtod(text, &parsed) && parsed == value)) return text;
  }
}

}  // namespace lockstep
