#ifndef LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_
#define LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_

#include "lockstep/v1/build.pb.h"

namespace lockstep {

// Returns the build of this program, which it reports to peers and shows in its status and its output.
v1::BuildInfo ThisBuildInfo();

// Returns the version of Lockstep's own layers in a build. If a build does not specify it, returns its arithmetic
// version, which used to cover the layers too.
int LayersVersion(const v1::BuildInfo& build);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_
