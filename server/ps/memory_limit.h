#ifndef LOCKSTEP_SERVER_PS_MEMORY_LIMIT_H_
#define LOCKSTEP_SERVER_PS_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The amount of memory that this process may use before the kernel kills it.
struct MemoryLimit {
  uint64_t bytes = 0;
  // The origin of the limit: "the machine", or a control group's file.
  std::string source;
};

// Returns the size of the machine's memory in bytes.
uint64_t PhysicalMemory();

// Returns the minimum of `physical_bytes` and the limits of this process's control groups and their ancestors:
// memory.max of version 2, and memory.limit_in_bytes of version 1, below /sys/fs/cgroup as mounted by systemd and
// containers. Ignores groups that are invisible (hidden by a container's namespace) or set to "max". Reads
// /proc/self/cgroup. `fs` is the machine's file system, except in tests.
MemoryLimit FindMemoryLimit(FileSystem* fs, uint64_t physical_bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_MEMORY_LIMIT_H_
