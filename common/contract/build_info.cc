#include "lockstep/common/contract/build_info.h"

#include "lockstep/common/base/version.h"

namespace lockstep {

v1::BuildInfo ThisBuildInfo() {
  const Build build = ThisBuild();
  v1::BuildInfo info;
  info.set_version(build.version);
  info.set_revision(build.revision);
  info.set_arithmetic_version(build.arithmetic_version);
  info.set_layers_version(build.layers_version);
  info.set_wire_version(build.wire_version);
  info.set_compiler(build.compiler);
  info.set_instruction_set(build.instruction_set);
  return info;
}

int LayersVersion(const v1::BuildInfo& build) {
  return build.layers_version() == 0 ? build.arithmetic_version() : build.layers_version();
}

}  // namespace lockstep
