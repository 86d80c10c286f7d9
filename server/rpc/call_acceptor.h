#ifndef LOCKSTEP_SERVER_RPC_CALL_ACCEPTOR_H_
#define LOCKSTEP_SERVER_RPC_CALL_ACCEPTOR_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/living_calls.h"
#include "server/rpc/queue_event.h"

namespace lockstep {

// Waits for calls and hands each to whoever serves its method; others end with UNIMPLEMENTED. Generated services would
// read the message of a unary call before anybody is asked. One event at a time.
class CallAcceptor final : public QueueEvent {
 public:
  using Handler = std::function<void(std::unique_ptr<IncomingCall>)>;

  // By method, "/lockstep.ChiefService/Step". All must outlive this, and this the server.
  CallAcceptor(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue, LivingCalls* living,
               std::map<std::string, Handler> handlers);

  // Waits for the next call; its event waits for the one after.
  void Accept();

  void OnEvent(bool ok) override;

 private:
  grpc::AsyncGenericService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  LivingCalls* const living_;
  const std::map<std::string, Handler> handlers_;
  std::unique_ptr<IncomingCall> next_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_ACCEPTOR_H_
