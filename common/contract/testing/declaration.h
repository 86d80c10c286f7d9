#ifndef LOCKSTEP_COMMON_CONTRACT_TESTING_DECLARATION_H_
#define LOCKSTEP_COMMON_CONTRACT_TESTING_DECLARATION_H_

#include <cstdint>

#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// Makes a request with a model one that opens a session at once: with this program's build, and a canary all of whose
// digests are `digest`, as of workers that compute the same.
void CompleteDeclaration(v1::OpenSessionRequest* request, uint64_t digest = 1);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_TESTING_DECLARATION_H_
