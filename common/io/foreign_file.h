#ifndef LOCKSTEP_COMMON_IO_FOREIGN_FILE_H_
#define LOCKSTEP_COMMON_IO_FOREIGN_FILE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Number of bytes at the start of a file from which its format is recognized.
inline constexpr size_t kForeignHeadBytes = 512;

// Recognizes files in other programs' formats by their first bytes. Returns what the file is and what to do about it,
// for example "it is a web page (HTML): download the file itself"; empty for anything else.
std::string ForeignFormat(absl::string_view head);

// Returns "; " followed by ForeignFormat of an open file, for the error message of a reader that cannot read it; empty
// if the format is not recognized.
std::string ForeignFormatOf(const RandomAccessFile& file);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_FOREIGN_FILE_H_
