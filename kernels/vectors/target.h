#ifndef LOCKSTEP_KERNELS_VECTORS_TARGET_H_
#define LOCKSTEP_KERNELS_VECTORS_TARGET_H_

#include <string>
#include <vector>

namespace lockstep {

// A vector instruction set that the kernels are compiled for. All of them give the same bits.
enum class KernelTarget { kAvx2, kAvx512, kNeon };

// Those that this processor can run, the fastest first.
std::vector<KernelTarget> AvailableTargets();

// The one that the kernels use: the fastest, or the one that the environment variable LOCKSTEP_TARGET named when the
// program started. Thread-safe.
KernelTarget CurrentTarget();

// "AVX2", "AVX-512" or "NEON".
const char* TargetName(KernelTarget target);

// Why the kernels cannot run as asked, in a sentence: LOCKSTEP_TARGET names none of "avx2", "avx512" and "neon", or one
// that this processor lacks; or it lacks all of them. Empty when all is well, as it is without LOCKSTEP_TARGET or with
// an empty one. Programs end with it before they compute.
std::string TargetError();

// What TargetError() would say of `name` in LOCKSTEP_TARGET on a processor with `available`.
std::string TargetNameError(const std::string& name, const std::vector<KernelTarget>& available);

// Kernels use `target`, one of AvailableTargets(), from the next call on. For tests and benchmarks.
void UseTarget(KernelTarget target);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_TARGET_H_
