#ifndef LOCKSTEP_COMMON_BASE_SYSTEM_RANDOM_H_
#define LOCKSTEP_COMMON_BASE_SYSTEM_RANDOM_H_

#include <cstdint>

namespace lockstep {

// Returns 64 unpredictable bits from the operating system. For names and secrets; results must not depend on them.
uint64_t SystemRandom64();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_SYSTEM_RANDOM_H_
