#include "lockstep/common/base/process/num_processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep {

int NumProcessors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // The call fails on machines with more processors than the set can hold.
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(CPU_COUNT(&allowed), 1);
  return std::max(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1);
}

}  // namespace lockstep
