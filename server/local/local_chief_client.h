#ifndef LOCKSTEP_SERVER_LOCAL_LOCAL_CHIEF_CLIENT_H_
#define LOCKSTEP_SERVER_LOCAL_LOCAL_CHIEF_CLIENT_H_

#include <memory>

#include "lockstep/common/client/chief_client.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {

// A chief in the same process, without a socket and without copies: gradients are taken where the worker
// wrote them, and values are read where the chief keeps them. `chief` must outlive the
// client and its channels.
std::unique_ptr<ChiefClient> NewLocalChiefClient(Chief* chief);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_LOCAL_LOCAL_CHIEF_CLIENT_H_
