#ifndef LOCKSTEP_COMMON_IO_CRC32C_H_
#define LOCKSTEP_COMMON_IO_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

// CRC32C (Castagnoli), as iSCSI, LevelDB and TFRecord use it (RFC 3720, B.4).

// Extends `crc`, the checksum of the preceding bytes, by `data`. The checksum of no bytes is 0.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

// Returns the checksum of two concatenated strings from the checksum of each; the second has `second_bytes` bytes.
uint32_t CombineCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

// Masks a checksum for storage in files, because checksums of data that contains checksums are weak (LevelDB,
// log_format.md).
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_CRC32C_H_
