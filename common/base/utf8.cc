#include "lockstep/common/base/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr uint32_t kGreatestCodePoint = 0x10ffff;

bool IsSurrogate(uint32_t code) { return code >= 0xd800 && code < 0xe000; }

// Returns the number of bytes in the first character of `text`, which must not be empty, or 0 if `text` does not begin
// with a character.
size_t CharacterSize(absl::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (size > 1 && (first < 0xc2 || first > 0xf4 || text.size() < size)) return 0;
  uint32_t code = size == 1 ? first : first & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3f);
  }
  const bool is_overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  return is_overlong || IsSurrogate(code) || code > kGreatestCodePoint ? 0 : size;
}

bool IsControl(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  // U+0080 to U+009F take two bytes.
  if (first == 0xc2) return static_cast<unsigned char>(character[1]) < 0xa0;
  return (first < 0x20 && first != '\t') || first == 0x7f;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string ToUtf8(absl::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    const size_t taken = size == 0 ? 1 : size;
    if (out.size() + taken > max_bytes) break;
    absl::StrAppend(&out, size == 0 ? absl::string_view("?") : text.substr(0, size));
    text.remove_prefix(taken);
  }
  return out;
}

std::string Printable(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    const absl::string_view taken = text.substr(0, std::max<size_t>(size, 1));
    if (size == 0 || IsControl(taken)) {
      for (const char c : taken)
        absl::StrAppend(&out, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      absl::StrAppend(&out, taken);
    }
    text.remove_prefix(taken.size());
  }
  return out;
}

}  // namespace lockstep
