#ifndef LOCKSTEP_COMMON_BASE_VERSION_H_
#define LOCKSTEP_COMMON_BASE_VERSION_H_

#include <string>

namespace lockstep {

// The product's version; it is raised with a release, in this line alone.
constexpr char kVersion[] = "0.11.0";
// What the bits of a run are, as one number. Raise it with every change after which the same configuration, data and
// seed give other weights, on whichever machine: an order of additions or another rounding in a kernel, a loss, an
// optimizer or the tree over slots; what is drawn from Philox, and for what; initial values; the order of a shuffle;
// how a file becomes examples. Workers of another version are refused, and so is a logdir of another: its run cannot go
// on, so do not raise it for anything else.
constexpr int kArithmeticVersion = 2;
// Raised whenever a worker of before cannot speak to a chief of now, or the other way round. 2: what a worker computes
// with, and its canary.
constexpr int kWireVersion = 2;

// Which build of Lockstep a program is.
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

// What --version prints: `program` with its version, and a line for what bits and peers depend on.
std::string BuildText(const std::string& program, const Build& build);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_VERSION_H_
