#include "lockstep/common/report/json_text.h"

#include <charconv>
#include <cmath>

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
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= 1e-5 && size < 1e15);
  char text[32];  // the shortest one that reads back exactly
  const auto end =
      std::to_chars(text, text + sizeof(text), value, fixed ? std::chars_format::fixed : std::chars_format::scientific);
  return std::string(text, end.ptr);
}

}  // namespace lockstep
