#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_ZIP_FORMAT_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_ZIP_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace lockstep::zip {

// The records of a ZIP archive (PKWARE's APPNOTE 4.3): their signatures, and their sizes without names, fields and
// comments. An archive consists of local headers, each followed by its member's bytes; the directory of entries; and
// the end record.
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr size_t kLocalBytes = 30;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr size_t kEntryBytes = 46;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr size_t kEndBytes = 22;
// The zip64 end record and its locator.
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr size_t kEnd64Bytes = 56;
constexpr uint32_t kLocatorSignature = 0x07064b50;
constexpr size_t kLocatorBytes = 20;

// The ID of the extra field for numbers that exceed 32 bits, and the placeholder for such numbers.
constexpr uint16_t kZip64Field = 1;
constexpr uint64_t kElsewhere32 = 0xffffffff;

constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
// Names are UTF-8.
constexpr uint16_t kUtf8Flag = 1 << 11;
// ZIP version 4.5, which a reader must support to read zip64.
constexpr uint16_t kVersion64 = 45;
constexpr uint16_t kVersion = 20;
// The earliest date, 1980-01-01.
constexpr uint16_t kFirstDay = 1 << 5 | 1;

}  // namespace lockstep::zip

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_ZIP_FORMAT_H_
