#ifndef LOCKSTEP_SERVER_PS_ALL_FINITE_H_
#define LOCKSTEP_SERVER_PS_ALL_FINITE_H_

#include <cstdint>

namespace lockstep {

// Whether none of the n values is NaN or infinite. As fast as they can be read from the cache.
bool AllFinite(const float* values, int64_t n);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_ALL_FINITE_H_
