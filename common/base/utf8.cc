#include "lockstep/common/base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace lockstep {
namespace {

constexpr uint32_t kGreatestCodePoint = 0x10ffff;

bool IsSurrogate(uint32_t code) { return code >= 0xd800 && code < 0xe000; }

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (size > 1 && (first < 0xc2 || first > 0xf4 || text.size() < size)) return false;
    uint32_t code = size == 1 ? first : first & (0x7f >> size);
    for (size_t i = 1; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte & 0xc0) != 0x80) return false;
      code = code << 6 | (byte & 0x3f);
    }
    const bool is_overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
    if (is_overlong || IsSurrogate(code) || code > kGreatestCodePoint) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace lockstep
