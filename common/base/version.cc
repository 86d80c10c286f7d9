#include "lockstep/common/base/version.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/kernels/vectors/target.h"

namespace lockstep {

// Defined in version_stamp.cc, which is compiled whenever a program is linked.
extern const char kStampedRevision[];

namespace {

// `git archive` replaces this text (.gitattributes).
constexpr absl::string_view kArchivedRevision = "$Format:%h$";

std::string Revision() {
  // Without --stamp, Bazel sets this to "redacted". Without a label, it is empty.
  const absl::string_view stamped = kStampedRevision;
  if (!stamped.empty() && stamped != "redacted") return std::string(stamped);
  return absl::StartsWith(kArchivedRevision, "$") ? "" : std::string(kArchivedRevision);
}

std::string Compiler() {
#if defined(__clang__)
  return absl::StrCat("Clang ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__);
#elif defined(__GNUC__)
  return absl::StrCat("GCC ", __GNUC__, ".", __GNUC_MINOR__, ".", __GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

}  // namespace

Build ThisBuild() {
  Build build;
  build.version = kVersion;
  build.revision = Revision();
  build.arithmetic_version = kArithmeticVersion;
  build.layers_version = kLayersVersion;
  build.wire_version = kWireVersion;
  build.compiler = Compiler();
  build.instruction_set = TargetName(CurrentTarget());
  return build;
}

std::string VersionText(const Build& build) {
  return build.revision.empty() ? build.version : absl::StrCat(build.version, " (revision ", build.revision, ")");
}

std::string BuildText(const std::string& program, const Build& build) {
  return absl::StrCat(program, " ", VersionText(build), "\narithmetic version ", build.arithmetic_version,
                      ", layers version ", build.layers_version, ", wire version ", build.wire_version, ", ",
                      build.compiler, ", ", build.instruction_set, "\n");
}

}  // namespace lockstep
