#ifndef LOCKSTEP_COMMON_BASE_VERSION_H_
#define LOCKSTEP_COMMON_BASE_VERSION_H_

#include <string>

namespace lockstep {

// The product's version; it is raised with a release, in this line alone.
constexpr char kVersion[] = "0.11.0";
// A number that stands for the bits of a run. Raise it with every change after which the same configuration, data and
// seed give other weights, on any machine: an order of additions or another rounding in a kernel, a loss, an optimizer
// or the tree over slots; the values that are drawn from Philox and their uses; initial values; the order of a shuffle;
// the way a file becomes examples. Workers of another version are refused, and so is a logdir of another version: its
// run cannot continue, so do not raise it for anything else.
constexpr int kArithmeticVersion = 2;
// Raised whenever a worker of before cannot speak to a chief of now, or the other way round. 2: what a worker computes
// with, and its canary.
constexpr int kWireVersion = 2;

// Identifies the build of Lockstep that a program is.
struct Build {
  std::string version;
  // The git commit, with "-dirty" behind it when files were changed; empty when the build does not know it.
  std::string revision;
  int arithmetic_version = 0;
  int wire_version = 0;
  // "GCC 12.2.0"
  std::string compiler;
  // The vector instructions that the kernels use here: "AVX-512" (common/kernels/target.h).
  std::string instruction_set;
};

// The build of this program. Its revision is that of `bazel build --stamp --embed_label=REVISION`, as ./lockstep calls
// it, or of `git archive`.
Build ThisBuild();

// "0.11.0 (revision 1a2b3c4)"
std::string VersionText(const Build& build);

// Returns the output of --version: `program` with its version, and a line of the versions, the compiler and the
// instruction set that bits and peers depend on.
std::string BuildText(const std::string& program, const Build& build);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_VERSION_H_
