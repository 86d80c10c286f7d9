#include "lockstep/server/rpc/call/unary_call.h"

#include <atomic>
#include <utility>
#include <vector>

#include "grpcpp/support/slice.h"

namespace lockstep {
namespace {

// While a message of at least this length is parsed, another thread waits for events (CompletionTag).
constexpr size_t kLongMessageBytes = 32 << 10;

}  // namespace

void UnaryCall::Start(std::unique_ptr<IncomingCall> incoming, const Method* method,
                      UnauthenticatedCalls* unauthenticated_calls) {
  std::shared_ptr<UnaryCall> call(new UnaryCall(std::move(incoming), method, unauthenticated_calls));
  call->self_ = call;
  unauthenticated_calls->Enter(call);
  call->call_->stream.Read(&call->message_, call.get());
}

bool UnaryCall::IsLong() const {
  if (state_ != State::kReading || !message_.Valid()) return false;
  return method_.long_reply || message_.Length() >= kLongMessageBytes;
}

void UnaryCall::OnEvent(bool ok) {
  const std::shared_ptr<UnaryCall> self = self_;
  if (state_ == State::kFinishing) {
    call_->OnEnded(ok);
    unauthenticated_calls_->Leave(this);
    self_.reset();
  } else if (!ok) {
    Answer(absl::InvalidArgumentError("the call has no message"));
  } else if (message_.Length() > method_.max_bytes) {
    Answer(absl::ResourceExhaustedError(absl::StrCat("a message of ", message_.Length(), " bytes; ",
                                                     call_->context.method(), " takes ", method_.max_bytes)));
  } else {
    Handle();
  }
}

UnaryCall::Method OnPool(UnaryCall::Method method, ThreadPool* pool, size_t most) {
  method.lasting = true;
  const auto pending = std::make_shared<std::atomic<size_t>>(0);
  method.handler = [handler = std::move(method.handler), pool, most, pending](std::string request, const CallPeer& peer,
                                                                              UnaryCall::Done done) {
    if (pending->fetch_add(1) >= most) {
      --*pending;
      done(absl::UnavailableError("too many calls of this method wait; try again"));
      return;
    }
    pool->Schedule([handler, pending, request = std::move(request), peer, done = std::move(done)]() mutable {
      handler(std::move(request), peer, std::move(done));
      --*pending;
    });
  };
  return method;
}

void UnaryCall::Handle() {
  std::string request;
  std::vector<grpc::Slice> slices;
  if (const grpc::Status dumped = message_.Dump(&slices); !dumped.ok()) {
    Answer(absl::InternalError(absl::StrCat("cannot read a message: ", dumped.error_message())));
    return;
  }
  for (const grpc::Slice& slice : slices) request.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  slices.clear();
  message_.Clear();
  state_ = State::kHandling;
  if (method_.lasting) unauthenticated_calls_->Leave(this);
  method_.handler(std::move(request), call_->peer, [self = self_](const absl::StatusOr<std::string>& reply) {
    if (self->method_.lasting) self->unauthenticated_calls_->Enter(self);
    self->Answer(reply);
  });
}

void UnaryCall::Answer(const absl::StatusOr<std::string>& reply) {
  state_ = State::kFinishing;
  message_.Clear();
  if (!reply.ok()) {
    call_->stream.Finish(call_->EndWith(reply.status()), this);
    return;
  }
  const grpc::Slice slice(*reply);
  call_->stream.WriteAndFinish(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), grpc::Status::OK, this);
}

}  // namespace lockstep
