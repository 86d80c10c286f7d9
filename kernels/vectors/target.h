#ifndef LOCKSTEP_KERNELS_VECTORS_TARGET_H_
#define LOCKSTEP_KERNELS_VECTORS_TARGET_H_

#include <string>
#include <vector>

namespace lockstep {

// A vector instruction set that the kernels are compiled for. All of them give the same bits.
enum class KernelTarget { kAvx2, kAvx512, kNeon };

// Returns the targets that this processor can run, the fastest first.
std::vector<KernelTarget> AvailableTargets();

// Returns the target that the kernels use: the fastest, or the one that the environment variable LOCKSTEP_TARGET named
// when the program started. Thread-safe.
KernelTarget CurrentTarget();

// "AVX2", "AVX-512" or "NEON".
const char* TargetName(KernelTarget target);

// Describes why the kernels cannot run as requested: LOCKSTEP_TARGET names none of "avx2", "avx512" and "neon", or one
// that this processor lacks, or the processor lacks all of them. Empty if they can; an empty LOCKSTEP_TARGET counts as
// unset. Programs check it before they compute, and exit with it.
std::string TargetError();

// Returns what TargetError() would return for `name` in LOCKSTEP_TARGET on a processor with `available`.
std::string TargetNameError(const std::string& name, const std::vector<KernelTarget>& available);

// Makes kernels use `target`, one of AvailableTargets(), from the next call on. For tests and benchmarks.
void UseTarget(KernelTarget target);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_TARGET_H_
