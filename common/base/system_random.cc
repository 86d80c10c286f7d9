#include "lockstep/common/base/system_random.h"

#include <sys/random.h>

#include "glog/logging.h"

namespace lockstep {

uint64_t SystemRandom64() {
  uint64_t bits = 0;
  // A request for up to 256 bytes is never fulfilled only in part.
  PCHECK(getrandom(&bits, sizeof(bits), 0) == sizeof(bits)) << "getrandom";
  return bits;
}

}  // namespace lockstep
