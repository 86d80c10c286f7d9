#ifndef LOCKSTEP_KERNELS_VECTORS_FMA_PEAK_H_
#define LOCKSTEP_KERNELS_VECTORS_FMA_PEAK_H_

#include <cstdint>

namespace lockstep {

// Does `rounds` rounds of independent fused multiply-adds in the registers of the current target, and returns the
// number of multiply-adds, counting each lane. No kernel can be faster. For benchmarks.
int64_t RunMultiplyAdds(int64_t rounds);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_FMA_PEAK_H_
