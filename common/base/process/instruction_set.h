#ifndef LOCKSTEP_COMMON_BASE_PROCESS_INSTRUCTION_SET_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_INSTRUCTION_SET_H_

// Included by headers whose users do floating-point arithmetic. A program must be compiled for the same instruction set
// as the library: in a model with Eigen, for example, the flags determine the number of lanes among which sums are
// divided. Also, the linker keeps only one copy of an inline function, and that copy must run on every processor
// (docs/library.md). Kernels choose their instruction set at run time.
#if !defined(__AVX2__) || !defined(__FMA__)
#error "Lockstep needs AVX2 and FMA: compile with LOCKSTEP_COPTS (Bazel) or pkg-config --cflags lockstep"
#elif defined(__AVX512F__)
#error "Lockstep is compiled without AVX-512: compile with LOCKSTEP_COPTS (Bazel) or pkg-config --cflags lockstep"
#elif defined(__FAST_MATH__)
#error "Lockstep's sums have a fixed order, which -ffast-math changes: compile without it"
#endif

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_INSTRUCTION_SET_H_
