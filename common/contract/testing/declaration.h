#ifndef LOCKSTEP_COMMON_CONTRACT_TESTING_DECLARATION_H_
#define LOCKSTEP_COMMON_CONTRACT_TESTING_DECLARATION_H_

#include <cstdint>

#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// Completes a request that has a model, so that it opens a session immediately. Adds this program's build, and a canary
// whose digests all equal `digest`, so that all workers seem to compute the same.
void CompleteDeclaration(v1::OpenSessionRequest* request, uint64_t digest = 1);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_TESTING_DECLARATION_H_
