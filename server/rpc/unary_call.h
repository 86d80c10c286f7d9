#ifndef LOCKSTEP_SERVER_RPC_UNARY_CALL_H_
#define LOCKSTEP_SERVER_RPC_UNARY_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/transport/bounded_parse.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/queue_event.h"
#include "server/rpc/visitors.h"

namespace lockstep {

// One unary call on the server's completion queue. Owns itself to the end of the answer.
class UnaryCall final : public QueueEvent, public Visitor, public std::enable_shared_from_this<UnaryCall> {
 public:
  // Called with the bytes of the reply, or with an error.
  using Done = std::function<void(absl::StatusOr<std::string>)>;
  struct Method {
    // Of the request. What is longer is refused.
    size_t max_bytes = 4096;
    // Calls done once, now or later and on any thread, but before the queue is shut down. Must not block.
    std::function<void(std::string request, Done done)> handler;
    // done may be called late; meanwhile the call is no visitor.
    bool lasting = false;
  };

  // `method` and `visitors` must outlive the call.
  static void Start(std::unique_ptr<IncomingCall> call, const Method* method, Visitors* visitors);

  void OnEvent(bool ok) override;
  bool IsLong() const override;
  void OnEvicted() override { call_->context.TryCancel(); }

 private:
  enum class State { kReading, kHandling, kFinishing };

  UnaryCall(std::unique_ptr<IncomingCall> call, const Method* method, Visitors* visitors)
      : call_(std::move(call)), method_(*method), visitors_(visitors) {}

  void Handle();
  void Answer(const absl::StatusOr<std::string>& reply);

  const std::unique_ptr<IncomingCall> call_;
  const Method& method_;
  Visitors* const visitors_;
  grpc::ByteBuffer message_;
  State state_ = State::kReading;
  // While an operation is pending or the handler works.
  std::shared_ptr<UnaryCall> self_;
};

// Parses a request of a few KiB, whose memory is bounded accordingly. Internal when it is none.
template <typename Request>
absl::Status ParseRequest(const std::string& bytes, uint64_t limit, Request* request) {
  const absl::Status status = ParseBounded(bytes, limit, request);
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InternalError(absl::StrCat("unable to parse request: ", status.message()));
}

// A method whose handler fills a reply at once.
template <typename Request, typename Reply>
UnaryCall::Method MethodOf(std::function<absl::Status(const Request&, Reply*)> handler) {
  UnaryCall::Method method;
  method.handler = [handler = std::move(handler), max_bytes = method.max_bytes](const std::string& bytes,
                                                                                const UnaryCall::Done& done) {
    Request request;
    Reply reply;
    absl::Status status = ParseRequest(bytes, 100 * max_bytes, &request);
    if (status.ok()) status = handler(request, &reply);
    done(status.ok() ? absl::StatusOr<std::string>(reply.SerializeAsString()) : status);
  };
  return method;
}

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_UNARY_CALL_H_
