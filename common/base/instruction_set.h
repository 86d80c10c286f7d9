#ifndef LOCKSTEP_COMMON_BASE_INSTRUCTION_SET_H_
#define LOCKSTEP_COMMON_BASE_INSTRUCTION_SET_H_

// For headers whose includers compute: the bits of a run are those of one instruction set, and Eigen's types and
// kernels differ between two, so a program must be compiled for the one that the library is compiled for
// (docs/library.md).
#if !defined(__AVX2__) || !defined(__FMA__)
#error "Lockstep needs AVX2 and FMA: compile with LOCKSTEP_COPTS (Bazel) or pkg-config --cflags lockstep"
#elif defined(__AVX512F__)
#error "Lockstep is compiled without AVX-512: compile with LOCKSTEP_COPTS (Bazel) or pkg-config --cflags lockstep"
#elif defined(__FAST_MATH__)
#error "Lockstep's sums have a fixed order, which -ffast-math changes: compile without it"
#endif

#endif  // LOCKSTEP_COMMON_BASE_INSTRUCTION_SET_H_
