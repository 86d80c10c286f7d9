#ifndef LOCKSTEP_COMMON_BASE_VERSION_H_
#define LOCKSTEP_COMMON_BASE_VERSION_H_

#include <string>

namespace lockstep {

// The product's version; raised with a release, only in this line.
constexpr char kVersion[] = "0.11.0";
// Two numbers that stand for the bits of a run. Raise one of them with every change after which the same configuration,
// data and seed give other weights, on any machine. Workers of another version are refused, and so is a logdir of
// another version: its run cannot continue, so do not raise them for anything else.
//
// Bits of every run: an order of additions or another rounding in an optimizer or in the tree over slots; multipliers,
// clips and weights; initial values and those of the canary; the order of a shuffle; the values that are drawn from
// Philox; the seed of a slot.
constexpr int kArithmeticVersion = 2;
// Bits of Lockstep's own layers, which a run whose workers compute with another framework does not depend on: kernels,
// losses, the uses of random numbers in layers and in augmentation, the way a file becomes examples.
constexpr int kLayersVersion = 2;
// Raised whenever an older worker cannot speak to a current chief, or the other way round. 2: the inputs of a worker's
// computation, and its canary. 3: values that come once more, and settings that come with a token. 4: tokens that name
// a batch of an input stream. 5: constant variables are sent once, and have a shared memory of their own.
constexpr int kWireVersion = 5;

// Identifies the build of Lockstep that a program is.
struct Build {
  std::string version;
  // The git commit, followed by "-dirty" if files were changed; empty if the build does not know it.
  std::string revision;
  int arithmetic_version = 0;
  int layers_version = 0;
  int wire_version = 0;
  // "GCC 12.2.0"
  std::string compiler;
  // The vector instructions that the kernels use here: "AVX-512" (kernels/vectors/target.h).
  std::string instruction_set;
};

// Returns the build of this program. Its revision comes from `bazel build --stamp --embed_label=REVISION`, as
// ./lockstep calls it, or from `git archive`.
Build ThisBuild();

// "0.11.0 (revision 1a2b3c4)"
std::string VersionText(const Build& build);

// Returns the output of --version: `program` with its version, and a line of the versions, the compiler and the
// instruction set that bits and peers depend on.
std::string BuildText(const std::string& program, const Build& build);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_VERSION_H_
