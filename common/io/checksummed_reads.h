#ifndef LOCKSTEP_COMMON_IO_CHECKSUMMED_READS_H_
#define LOCKSTEP_COMMON_IO_CHECKSUMMED_READS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Bytes of a file, and where they go.
struct FileRange {
  const RandomAccessFile* file = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
  // Null: they are wanted for their checksum alone.
  char* out = nullptr;
};

// Reads the ranges piece by piece, each once, and returns the CRC32C of each. A piece is checksummed while the
// processor's cache still has it. With a pool, several threads take pieces, also of one range; the kernel then provides
// fresh memory of `out` on several processors. Errors: that of the first piece that could not be read; the rest is
// undefined then.
absl::StatusOr<std::vector<uint32_t>> ReadChecksummed(absl::Span<const FileRange> ranges, ThreadPool* pool);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_CHECKSUMMED_READS_H_
