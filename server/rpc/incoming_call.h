#ifndef LOCKSTEP_SERVER_RPC_INCOMING_CALL_H_
#define LOCKSTEP_SERVER_RPC_INCOMING_CALL_H_

#include "grpcpp/generic/async_generic_service.h"
#include "server/rpc/living_calls.h"

namespace lockstep {

// A call that a client has begun: its method is known, its messages were not read yet, so that whoever serves the
// method decides how much of them is. To be destroyed when no operation is pending.
struct IncomingCall {
  explicit IncomingCall(LivingCalls* living) : member(living) {}

  const LivingCalls::Member member;
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_INCOMING_CALL_H_
