#ifndef LOCKSTEP_SERVER_RPC_CALL_INCOMING_CALL_H_
#define LOCKSTEP_SERVER_RPC_CALL_INCOMING_CALL_H_

#include "grpcpp/generic/async_generic_service.h"
#include "lockstep/server/rpc/call/call_peer.h"
#include "lockstep/server/rpc/call/in_flight_calls.h"

namespace lockstep {

// A call that a client has begun. Its method is known, but its messages have not been read yet, so that the method's
// handler decides how much of them to read. Must not be destroyed while an operation is pending.
struct IncomingCall {
  explicit IncomingCall(InFlightCalls* living) : member(living) {}

  const InFlightCalls::Member member;
  // The peer, once it is admitted.
  CallPeer peer;
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_INCOMING_CALL_H_
