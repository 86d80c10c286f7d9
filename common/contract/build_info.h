#ifndef LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_
#define LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_

#include "lockstep/v1/build.pb.h"

namespace lockstep {

// The build of this program, for its peers, its status and what it writes.
v1::BuildInfo ThisBuildInfo();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_BUILD_INFO_H_
