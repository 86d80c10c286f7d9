#ifndef LOCKSTEP_COMMON_IO_CHECKSUMMED_READS_H_
#define LOCKSTEP_COMMON_IO_CHECKSUMMED_READS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// A range of a file and its destination.
struct FileRange {
  const RandomAccessFile* file = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
  // If null, the range is only checksummed.
  char* out = nullptr;
};

// Reads each range once, in pieces, and returns its CRC32C. A piece is checksummed while it is in the processor's
// cache. With a pool, several threads share the pieces, even of one range, so the kernel provides fresh memory for
// `out` on several processors. Returns the error of the first piece that could not be read; the output is then
// undefined.
absl::StatusOr<std::vector<uint32_t>> ReadChecksummed(absl::Span<const FileRange> ranges, ThreadPool* pool);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_CHECKSUMMED_READS_H_
