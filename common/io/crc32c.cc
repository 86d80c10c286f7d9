#include "common/io/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace lockstep {

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data) {
  constexpr size_t kLargest = 1 << 30;  // ISA-L takes an int.
  while (!data.empty()) {
    const absl::string_view piece = data.substr(0, kLargest);
    // ISA-L takes and returns the inverted register and does not write to its argument.
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(piece.data()));
    crc = ~crc32_iscsi(bytes, static_cast<int>(piece.size()), ~crc);
    data.remove_prefix(piece.size());
  }
  return crc;
}

}  // namespace lockstep
