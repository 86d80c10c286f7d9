#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_CALL_ADMISSION_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_CALL_ADMISSION_H_

#include "absl/status/status.h"
#include "lockstep/server/rpc/admission/peer_authority.h"
#include "lockstep/server/rpc/call/incoming_call.h"

namespace lockstep {

// Sets the peer of a call that has begun, from its connection's certificates and its headers. Errors: as for
// PeerAuthority::Admit, in which case the call must end.
absl::Status AdmitCall(PeerAuthority* authority, IncomingCall* call);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_CALL_ADMISSION_H_
