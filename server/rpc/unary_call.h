#ifndef LOCKSTEP_SERVER_RPC_UNARY_CALL_H_
#define LOCKSTEP_SERVER_RPC_UNARY_CALL_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "common/transport/status_conversion.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"
#include "server/rpc/living_calls.h"
#include "server/rpc/queue_event.h"

namespace lockstep {

// One unary call on the server's completion queue. Owns itself from Accept to the end of the answer.
template <typename Service, typename Request, typename Reply>
class UnaryCall final : public QueueEvent {
 public:
  // Service::RequestX of a generated AsyncService.
  using RequestMethod = void (Service::*)(grpc::ServerContext*, Request*, grpc::ServerAsyncResponseWriter<Reply>*,
                                          grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*);
  // Fills the reply and calls done with the status, once, now or later and on any thread, but before the queue
  // is shut down. Request and reply live until then. Must not block.
  using Done = std::function<void(const absl::Status&)>;
  using Handler = std::function<void(const Request&, Reply*, Done)>;

  // Waits for the next call; when it comes, another UnaryCall is made to wait.
  static void Accept(Service* service, grpc::ServerCompletionQueue* queue, LivingCalls* living, RequestMethod method,
                     Handler handler) {
    auto* const call = new UnaryCall(service, queue, living, method, std::move(handler));
    (service->*method)(&call->context_, &call->request_, &call->writer_, queue, queue, call);
  }

  void OnEvent(bool ok) override {
    if (!ok || answered_) {
      delete this;
      return;
    }
    answered_ = true;
    Accept(service_, queue_, living_, method_, handler_);
    handler_(request_, &reply_, [this](const absl::Status& status) {
      if (status.ok()) {
        writer_.Finish(reply_, grpc::Status::OK, this);
      } else {
        writer_.FinishWithError(ToGrpc(status), this);
      }
    });
  }

 private:
  UnaryCall(Service* service, grpc::ServerCompletionQueue* queue, LivingCalls* living, RequestMethod method,
            Handler handler)
      : service_(service),
        queue_(queue),
        living_(living),
        member_(living),
        method_(method),
        handler_(std::move(handler)),
        writer_(&context_) {}

  Service* const service_;
  grpc::ServerCompletionQueue* const queue_;
  LivingCalls* const living_;
  const LivingCalls::Member member_;
  const RequestMethod method_;
  const Handler handler_;
  grpc::ServerContext context_;
  Request request_;
  Reply reply_;
  grpc::ServerAsyncResponseWriter<Reply> writer_;
  bool answered_ = false;  // or about to be
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_UNARY_CALL_H_
