#include "lockstep/common/checkpoint/bundle/string_tensor.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "lockstep/common/checkpoint/bundle/varint.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/little_endian.h"

namespace lockstep {

absl::Status CheckStrings(absl::string_view encoded, uint64_t elements, uint32_t crc) {
  uint32_t computed = 0;
  uint64_t total = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    uint64_t length;
    if (!ConsumeVarint(&encoded, &length) || length > encoded.size() || total + length > encoded.size()) {
      return absl::InvalidArgumentError(absl::StrCat("string ", i, " of ", elements, " is cut off"));
    }
    total += length;
    std::string bytes;
    if (length <= UINT32_MAX) {
      AppendLittleEndian<uint32_t>(&bytes, length);
    } else {
      AppendLittleEndian<uint64_t>(&bytes, length);
    }
    computed = ExtendCrc32c(computed, bytes);
  }
  if (encoded.size() < 4 || encoded.size() - 4 != total) {
    return absl::InvalidArgumentError(
        absl::StrCat("strings of ", total, " bytes and a checksum in ", encoded.size(), " bytes"));
  }
  if (UnmaskCrc32c(LoadLittleEndian<uint32_t>(encoded.data())) != computed) {
    return absl::InvalidArgumentError("the checksum of the strings' lengths is wrong");
  }
  computed = ExtendCrc32c(computed, encoded);
  if (computed != crc) {
    return absl::InvalidArgumentError(
        absl::StrCat("the strings have checksum ", computed, " where ", crc, " is stored"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
