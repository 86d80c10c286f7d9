#ifndef LOCKSTEP_KERNELS_VECTORS_TARGET_H_
#define LOCKSTEP_KERNELS_VECTORS_TARGET_H_

#include <string>
#include <vector>

namespace lockstep {

// A vector instruction set that the kernels are compiled for. All of them produce the same bits.
enum class KernelTarget { kAvx2, kAvx512, kNeon };

// Returns the targets that this processor can run, the fastest first.
std::vector<KernelTarget> AvailableTargets();

// Returns the target that the kernels use: the fastest one, or the one named by the environment variable
// LOCKSTEP_TARGET when the program started. Thread-safe.
KernelTarget CurrentTarget();

// Returns "AVX2", "AVX-512" or "NEON".
const char* TargetName(KernelTarget target);

// Describes why the kernels cannot run as requested: LOCKSTEP_TARGET is not "avx2", "avx512" or "neon", or this
// processor lacks that target, or the processor lacks all of them. Returns an empty string if they can run. An empty
// LOCKSTEP_TARGET counts as unset. Programs check this before they compute, and exit with the error.
std::string TargetError();

// Returns what TargetError() would return for `name` in LOCKSTEP_TARGET on a processor with the targets `available`.
std::string TargetNameError(const std::string& name, const std::vector<KernelTarget>& available);

// Makes the kernels use `target`, one of AvailableTargets(), from the next call on. For tests and benchmarks.
void UseTarget(KernelTarget target);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_TARGET_H_
