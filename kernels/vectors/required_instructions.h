#ifndef LOCKSTEP_KERNELS_VECTORS_REQUIRED_INSTRUCTIONS_H_
#define LOCKSTEP_KERNELS_VECTORS_REQUIRED_INSTRUCTIONS_H_

#include <cstdint>

namespace lockstep {

// What an x86 processor says of its instructions.
struct ProcessorFeatures {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t extended_ecx = 0;  // Leaf 0x80000001.
  uint32_t xcr0 = 0;          // The registers that the operating system saves; 0 where it uses no XSAVE.
};

// This processor's.
ProcessorFeatures ThisProcessor();

// What every object is compiled for (-march=x86-64-v3) and a processor with `features` lacks, such as "AVX2"; null when
// it lacks nothing.
//
// A program that links this library ends with a sentence and exit code 2 where its processor lacks something: before
// any static initializer, since those are compiled for x86-64-v3 as well. Only this library's source is not.
const char* MissingInstructions(const ProcessorFeatures& features);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_REQUIRED_INSTRUCTIONS_H_
