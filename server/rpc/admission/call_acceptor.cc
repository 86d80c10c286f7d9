#include "lockstep/server/rpc/admission/call_acceptor.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// A call of an unknown method. Owns itself.
class RefusedCall final : public CompletionTag {
 public:
  explicit RefusedCall(std::unique_ptr<IncomingCall> call) : call_(std::move(call)) {
    call_->stream.Finish(
        grpc::Status(grpc::StatusCode::UNIMPLEMENTED, absl::StrCat("there is no method ", call_->context.method())),
        this);
  }
  void OnEvent(bool) override { delete this; }

 private:
  const std::unique_ptr<IncomingCall> call_;
};

}  // namespace

CallAcceptor::CallAcceptor(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue,
                           InFlightCalls* living, std::map<std::string, Handler> handlers)
    : service_(service), queue_(queue), living_(living), handlers_(std::move(handlers)) {}

void CallAcceptor::Accept() {
  next_ = std::make_unique<IncomingCall>(living_);
  service_->RequestCall(&next_->context, &next_->stream, queue_, queue_, this);
}

void CallAcceptor::OnEvent(bool ok) {
  std::unique_ptr<IncomingCall> call = std::move(next_);
  if (!ok) return;  // the server shuts down
  Accept();
  const auto handler = handlers_.find(call->context.method());
  if (handler != handlers_.end()) {
    handler->second(std::move(call));
  } else {
    new RefusedCall(std::move(call));
  }
}

}  // namespace lockstep
