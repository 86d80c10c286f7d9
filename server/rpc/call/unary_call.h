#ifndef LOCKSTEP_SERVER_RPC_CALL_UNARY_CALL_H_
#define LOCKSTEP_SERVER_RPC_CALL_UNARY_CALL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/common/transport/codec/bounded_parse.h"
#include "lockstep/server/rpc/call/call_peer.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/call/incoming_call.h"
#include "lockstep/server/rpc/call/unauthenticated_calls.h"

namespace lockstep {

// A unary call on the server's completion queue. Owns itself until the answer is sent. Used by one thread at a time:
// either the thread of the operation that has ended or the handler's thread. OnEvicted may be called on any thread.
class UnaryCall final : public CompletionTag, public EvictableCall, public std::enable_shared_from_this<UnaryCall> {
 public:
  // Called with the bytes of the reply, or with an error.
  using Done = std::function<void(absl::StatusOr<std::string>)>;
  struct Method {
    // Longer requests are refused.
    size_t max_bytes = 4096;
    // Must call `done` exactly once, immediately or later and on any thread, but before the queue is shut down. Must
    // not block. `peer` is the caller.
    std::function<void(std::string request, const CallPeer& peer, Done done)> handler;
    // True if `done` may be called much later. Until then, the call does not count as unauthenticated.
    bool lasting = false;
    // True if the handler copies as much data as a long message has, so that another thread should wait for events
    // meanwhile.
    bool long_reply = false;
  };

  // The pointers must outlive the call.
  static void Start(std::unique_ptr<IncomingCall> call, const Method* method,
                    UnauthenticatedCalls* unauthenticated_calls);

  void OnEvent(bool ok) override;
  bool IsLong() const override;
  void OnEvicted() override { call_->context.TryCancel(); }

 private:
  enum class State { kReading, kHandling, kFinishing };

  UnaryCall(std::unique_ptr<IncomingCall> call, const Method* method, UnauthenticatedCalls* unauthenticated_calls)
      : call_(std::move(call)), method_(*method), unauthenticated_calls_(unauthenticated_calls) {}

  void Handle();
  void Answer(const absl::StatusOr<std::string>& reply);

  const std::unique_ptr<IncomingCall> call_;
  const Method& method_;
  UnauthenticatedCalls* const unauthenticated_calls_;
  grpc::ByteBuffer message_;
  State state_ = State::kReading;
  std::shared_ptr<UnaryCall> self_;  // set while an operation is pending or the handler works
};

// Returns a method that runs the handler on a thread of `pool`, which must outlive the calls. Calls that wait for a
// thread do not count as unauthenticated, however long they wait. If `most` calls are already waiting or running,
// further ones are refused with Unavailable.
UnaryCall::Method OnPool(UnaryCall::Method method, ThreadPool* pool, size_t most);

// Parses a request with at most about `limit` bytes of memory. Returns Internal if the bytes are not such a request.
template <typename Request>
absl::Status ParseRequest(const std::string& bytes, uint64_t limit, Request* request) {
  const absl::Status status = ParseBounded(bytes, limit, request);
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InternalError(absl::StrCat("unable to parse request: ", status.message()));
}

// Returns a method whose calls `implementation` answers immediately.
template <typename Request, typename Reply>
UnaryCall::Method ServePeer(std::function<absl::StatusOr<Reply>(const Request&, const CallPeer&)> implementation,
                            size_t max_bytes = UnaryCall::Method().max_bytes) {
  UnaryCall::Method method;
  method.max_bytes = max_bytes;
  method.handler = [implementation = std::move(implementation), limit = 100 * method.max_bytes](
                       const std::string& bytes, const CallPeer& peer, const UnaryCall::Done& done) {
    Request request;
    const absl::Status status = ParseRequest(bytes, limit, &request);
    if (!status.ok()) return done(status);
    const absl::StatusOr<Reply> reply = implementation(request, peer);
    done(reply.ok() ? absl::StatusOr<std::string>(reply->SerializeAsString()) : reply.status());
  };
  return method;
}

// Like ServePeer, for a method that does not depend on the caller.
template <typename Request, typename Reply>
UnaryCall::Method Serve(std::function<absl::StatusOr<Reply>(const Request&)> implementation,
                        size_t max_bytes = UnaryCall::Method().max_bytes) {
  return ServePeer<Request, Reply>([implementation = std::move(implementation)](
                                       const Request& request, const CallPeer&) { return implementation(request); },
                                   max_bytes);
}

// Like ServePeer, with a member function that takes the caller's name. `impl` must outlive the server.
template <typename Request, typename Reply, typename Impl>
UnaryCall::Method Serve(Impl* impl, absl::StatusOr<Reply> (Impl::*implementation)(const Request&, const std::string&),
                        size_t max_bytes = UnaryCall::Method().max_bytes) {
  return ServePeer<Request, Reply>(
      [=](const Request& request, const CallPeer& peer) { return (impl->*implementation)(request, peer.name); },
      max_bytes);
}

// Like Serve above, with a member function of `impl`, which must outlive the server.
template <typename Request, typename Reply, typename Impl>
UnaryCall::Method Serve(Impl* impl, absl::StatusOr<Reply> (Impl::*implementation)(const Request&),
                        size_t max_bytes = UnaryCall::Method().max_bytes) {
  return Serve<Request, Reply>([=](const Request& request) { return (impl->*implementation)(request); }, max_bytes);
}

// Like Serve above, with a member function that ignores the request and cannot fail.
template <typename Request, typename Reply, typename Impl>
UnaryCall::Method Serve(Impl* impl, Reply (Impl::*implementation)() const) {
  return Serve<Request, Reply>([=](const Request&) -> absl::StatusOr<Reply> { return (impl->*implementation)(); });
}

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_UNARY_CALL_H_
