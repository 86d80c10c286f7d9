#ifndef LOCKSTEP_KERNELS_VECTORS_TARGETS_H_
#define LOCKSTEP_KERNELS_VECTORS_TARGETS_H_

// The targets that Highway compiles the kernels for. Must be included before any Highway header.
#ifdef HIGHWAY_HWY_BASE_H_
#error "A header of Highway comes before targets.h"
#endif
// Every sum here relies on the fused multiply-add of AVX2, AVX-512 and NEON. Highway's other targets either lack it
// (SSE4, scalar) and would produce different bits, or would not be faster.
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3 | HWY_NEON))
// Highway requires AES for AVX2; x86-64-v3 does not include it, and the kernels do not use it.
#define HWY_DISABLE_PCLMUL_AES 1

#endif  // LOCKSTEP_KERNELS_VECTORS_TARGETS_H_
