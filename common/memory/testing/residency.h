#ifndef LOCKSTEP_COMMON_MEMORY_TESTING_RESIDENCY_H_
#define LOCKSTEP_COMMON_MEMORY_TESTING_RESIDENCY_H_

#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {

// True when the kernel has provided every page of the buffer.
bool IsResident(const AlignedBuffer& buffer);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_TESTING_RESIDENCY_H_
