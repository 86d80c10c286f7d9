#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_CALL_ACCEPTOR_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_CALL_ACCEPTOR_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "lockstep/server/rpc/call/call_counts.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/call/in_flight_calls.h"
#include "lockstep/server/rpc/call/incoming_call.h"

namespace lockstep {

// The acceptor of a server's calls. Hands each call to the handler of its method; calls to other methods end with
// UNIMPLEMENTED. Generated services are not used, because they would read the message of a unary call before the
// handler runs. Handles one event at a time.
class CallAcceptor final : public CompletionTag {
 public:
  using Handler = std::function<void(std::unique_ptr<IncomingCall>)>;
  // Sets the peer of a call. If it returns an error, the call ends with that error.
  using Admission = std::function<absl::Status(IncomingCall*)>;

  // The keys of `handlers` are methods, such as "/lockstep.v1.ChiefService/Step". Without `admit`, every call is
  // admitted. All arguments must outlive this object, which must outlive the server.
  CallAcceptor(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue, InFlightCalls* living,
               CallCounts* ended, std::map<std::string, Handler> handlers, Admission admit = nullptr);

  // Starts to wait for the next call. When it arrives, OnEvent starts to wait for the one after it.
  void Accept();

  void OnEvent(bool ok) override;

 private:
  grpc::AsyncGenericService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  InFlightCalls* const living_;
  CallCounts* const ended_;
  const std::map<std::string, Handler> handlers_;
  const Admission admit_;
  std::unique_ptr<IncomingCall> next_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_CALL_ACCEPTOR_H_
