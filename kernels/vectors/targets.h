#ifndef LOCKSTEP_KERNELS_VECTORS_TARGETS_H_
#define LOCKSTEP_KERNELS_VECTORS_TARGETS_H_

// The targets that Highway compiles the kernels for. Must be included before any header of Highway.
#ifdef HIGHWAY_HWY_BASE_H_
#error "A header of Highway comes before targets.h"
#endif
// AVX2, AVX-512 and NEON have a fused multiply-add, on which every sum here relies. Highway's other targets either lack
// it (SSE4, scalar) and would give other bits, or gain nothing.
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3 | HWY_NEON))
// Highway requires AES for AVX2; x86-64-v3 does not include it, and the kernels do not use it.
#define HWY_DISABLE_PCLMUL_AES 1

#endif  // LOCKSTEP_KERNELS_VECTORS_TARGETS_H_
