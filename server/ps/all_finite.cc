#include "lockstep/server/ps/all_finite.h"

#include "lockstep/kernels/rounding.h"

namespace lockstep {

bool AllFinite(const float* values, int64_t n) { return AllValuesFinite(n, values); }

}  // namespace lockstep
