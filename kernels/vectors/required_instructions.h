#ifndef LOCKSTEP_KERNELS_VECTORS_REQUIRED_INSTRUCTIONS_H_
#define LOCKSTEP_KERNELS_VECTORS_REQUIRED_INSTRUCTIONS_H_

#include <cstdint>

namespace lockstep {

// The instructions of an x86 processor, as reported by cpuid and xgetbv.
struct ProcessorFeatures {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t extended_ecx = 0;  // Leaf 0x80000001.
  uint32_t xcr0 = 0;          // The registers that the operating system saves; 0 without XSAVE.
};

// Returns this processor's features.
ProcessorFeatures ThisProcessor();

// Returns the first required feature, such as "AVX2", that a processor with `features` lacks, or null if it lacks none.
// Every object is compiled for these features (-march=x86-64-v3).
//
// If the processor lacks a feature, a program that links this library prints a message and exits with code 2. It does
// so before any static initializer runs, since those are compiled for x86-64-v3 too. Only the source of this library is
// compiled for plain x86-64.
const char* MissingInstructions(const ProcessorFeatures& features);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_REQUIRED_INSTRUCTIONS_H_
