#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_VARINT_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_VARINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

// Consumes a base-128 number of at most 64 bits, lowest digits first, from the front of `data`. Returns false if there
// is none.
inline bool ConsumeVarint(absl::string_view* data, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !data->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(data->front());
    data->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_VARINT_H_
