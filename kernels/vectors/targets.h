#ifndef LOCKSTEP_KERNELS_VECTORS_TARGETS_H_
#define LOCKSTEP_KERNELS_VECTORS_TARGETS_H_

// What Highway compiles the kernels for. Included before any header of Highway.
#ifdef HIGHWAY_HWY_BASE_H_
#error "A header of Highway comes before targets.h"
#endif
//
// AVX2, AVX-512 and NEON have a fused multiply-add, which every sum of ours is a chain of. Highway's other targets
// either lack it (SSE4, scalar) and would give other bits, or bring nothing.
#define HWY_DISABLED_TARGETS (~(HWY_AVX2 | HWY_AVX3 | HWY_NEON))
// Highway counts AES among what AVX2 needs; x86-64-v3 is without it, and so are the kernels.
#define HWY_DISABLE_PCLMUL_AES 1

#endif  // LOCKSTEP_KERNELS_VECTORS_TARGETS_H_
