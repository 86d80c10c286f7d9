#ifndef LOCKSTEP_SERVER_RPC_CALL_INCOMING_CALL_H_
#define LOCKSTEP_SERVER_RPC_CALL_INCOMING_CALL_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/status.h"
#include "lockstep/common/transport/connection/status_conversion.h"
#include "lockstep/server/rpc/call/call_counts.h"
#include "lockstep/server/rpc/call/call_peer.h"
#include "lockstep/server/rpc/call/in_flight_calls.h"

namespace lockstep {

// A call that a client has begun. Its method is known, but its messages have not been read yet, so that the method's
// handler decides how much of them to read. Must not be destroyed while an operation is pending.
struct IncomingCall {
  // Both must outlive the call.
  IncomingCall(InFlightCalls* living, CallCounts* counts) : member(living), ended(counts) {}

  // Returns the status with which to finish the stream. Must be called at most once.
  grpc::Status EndWith(const absl::Status& status) {
    code = status.code();
    return ToGrpc(status);
  }
  // Counts the call. Must be called once the operation that finishes the stream has ended. `ok` is its result, which is
  // false if the client is gone or the call was cancelled.
  void OnEnded(bool ok) { ended->Add(counted_as, ok ? code : absl::StatusCode::kCancelled); }

  const InFlightCalls::Member member;
  CallCounts* const ended;
  // The method as it is counted: without its service, or "other" if the server does not have it.
  std::string counted_as;
  absl::StatusCode code = absl::StatusCode::kOk;
  // The peer, once it is admitted.
  CallPeer peer;
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_INCOMING_CALL_H_
