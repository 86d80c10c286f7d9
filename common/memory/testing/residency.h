#ifndef LOCKSTEP_COMMON_MEMORY_TESTING_RESIDENCY_H_
#define LOCKSTEP_COMMON_MEMORY_TESTING_RESIDENCY_H_

#include <cstddef>

#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {

// Returns true if the kernel has provided every page of the buffer.
bool IsResident(const AlignedBuffer& buffer);
// Returns the number of pages that the kernel has provided for these bytes.
size_t ResidentPages(const void* data, size_t bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_TESTING_RESIDENCY_H_
