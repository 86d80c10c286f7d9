#include "lockstep/server/rpc/admission/call_acceptor.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// A call that ends before any of its messages is read. Owns itself.
class RefusedCall final : public CompletionTag {
 public:
  RefusedCall(std::unique_ptr<IncomingCall> call, const absl::Status& why) : call_(std::move(call)) {
    call_->stream.Finish(call_->EndWith(why), this);
  }
  void OnEvent(bool ok) override {
    call_->OnEnded(ok);
    delete this;
  }

 private:
  const std::unique_ptr<IncomingCall> call_;
};

}  // namespace

CallAcceptor::CallAcceptor(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue,
                           InFlightCalls* living, CallCounts* ended, std::map<std::string, Handler> handlers,
                           Admission admit)
    : service_(service),
      queue_(queue),
      living_(living),
      ended_(ended),
      handlers_(std::move(handlers)),
      admit_(std::move(admit)) {}

void CallAcceptor::Accept() {
  next_ = std::make_unique<IncomingCall>(living_, ended_);
  service_->RequestCall(&next_->context, &next_->stream, queue_, queue_, this);
}

void CallAcceptor::OnEvent(bool ok) {
  std::unique_ptr<IncomingCall> call = std::move(next_);
  if (!ok) return;  // the server is shutting down
  Accept();
  const auto handler = handlers_.find(call->context.method());
  call->counted_as = handler == handlers_.end() ? "other" : handler->first.substr(handler->first.rfind('/') + 1);
  const absl::Status admitted = admit_ ? admit_(call.get()) : absl::OkStatus();
  if (!admitted.ok()) {
    new RefusedCall(std::move(call), admitted);
  } else if (handler != handlers_.end()) {
    handler->second(std::move(call));
  } else {
    const std::string method = call->context.method();
    new RefusedCall(std::move(call), absl::UnimplementedError(absl::StrCat("there is no method ", method)));
  }
}

}  // namespace lockstep
