#ifndef LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_
#define LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_

#include "lockstep/v1/build.pb.h"

namespace lockstep {

// Returns this program's build, which it reports to peers, in its status and in its output.
v1::BuildInfo ThisBuildInfo();

// Returns the version of Lockstep's own layers in a build. Builds that do not name it have one number for all bits.
int LayersVersion(const v1::BuildInfo& build);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_
