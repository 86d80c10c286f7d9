#ifndef LOCKSTEP_COMMON_BASE_VERSION_H_
#define LOCKSTEP_COMMON_BASE_VERSION_H_

#include <string>

namespace lockstep {

// The product's version. A release changes only this line.
constexpr char kVersion[] = "0.12.0";
// Two numbers that identify the bits that a run computes. Raise one of them with every change that makes the same
// configuration, data and seed produce different weights on any machine. Workers with a different number are refused. A
// logdir with a different number is also refused, so its run cannot continue. Do not raise them for any other reason.
//
// kArithmeticVersion is for the bits of every run: the order of additions or the rounding in an optimizer or in the
// tree over slots; multipliers, clips and weights; initial values and the canary's values; the order of a shuffle;
// values drawn from Philox; a slot's seed.
constexpr int kArithmeticVersion = 2;
// kLayersVersion is for the bits of Lockstep's own layers: kernels, losses, the uses of random numbers in layers and in
// augmentation, and the way a file becomes examples. A run whose workers compute with another framework does not depend
// on them.
constexpr int kLayersVersion = 2;
// Raised whenever an older worker cannot talk to a current chief, or vice versa. 2: the inputs of a worker's
// computation, and its canary. 3: values that are sent again, and settings that are sent with a token. 4: tokens that
// name a batch of an input stream. 5: constant variables are sent once, and have their own shared memory.
constexpr int kWireVersion = 5;

// The build of Lockstep that a program contains.
struct Build {
  std::string version;
  // The git commit, followed by "-dirty" if files were changed. Empty if the build does not know it.
  std::string revision;
  int arithmetic_version = 0;
  int layers_version = 0;
  int wire_version = 0;
  // "GCC 12.2.0"
  std::string compiler;
  // The vector instructions that the kernels use on this machine, e.g. "AVX-512" (kernels/vectors/target.h).
  std::string instruction_set;
};

// Returns the build of this program. Its revision comes from `bazel build --stamp --embed_label=REVISION`, as
// ./lockstep calls it, or from `git archive`.
Build ThisBuild();

// "0.12.0 (revision 1a2b3c4)"
std::string VersionText(const Build& build);

// Returns the output of --version: `program` with its version, and a line with the versions, the compiler and the
// instruction set on which bits and peers depend.
std::string BuildText(const std::string& program, const Build& build);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_VERSION_H_
