#ifndef LOCKSTEP_SERVER_LOCAL_LOCAL_CHIEF_CLIENT_H_
#define LOCKSTEP_SERVER_LOCAL_LOCAL_CHIEF_CLIENT_H_

#include <memory>

#include "lockstep/common/client/chief_client.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {

// Returns a client for a chief in the same process. The client uses no socket and makes no copies: the chief reads
// gradients where the worker wrote them, and the worker reads values in the chief's memory. `chief` must outlive the
// client and its channels.
std::unique_ptr<ChiefClient> NewLocalChiefClient(Chief* chief);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_LOCAL_LOCAL_CHIEF_CLIENT_H_
