#ifndef LOCKSTEP_SERVER_PS_MEMORY_LIMIT_H_
#define LOCKSTEP_SERVER_PS_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// How much memory this process may use before the kernel ends it.
struct MemoryLimit {
  uint64_t bytes = 0;
  // Where the limit comes from: "the machine", or a control group's file.
  std::string source;
};

// Bytes of memory that the machine has.
uint64_t PhysicalMemory();

// The least of `physical_bytes` and the limits of this process's control groups, its own and those above it: memory.max
// of version 2, memory.limit_in_bytes of version 1, below /sys/fs/cgroup as systemd and containers mount them. Groups
// that are not in sight (a container's namespace hides them), or that say "max", limit nothing. Reads
// /proc/self/cgroup; `fs` is the machine's files but in tests.
MemoryLimit FindMemoryLimit(FileSystem* fs, uint64_t physical_bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_MEMORY_LIMIT_H_
