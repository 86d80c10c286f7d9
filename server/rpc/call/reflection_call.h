#ifndef LOCKSTEP_SERVER_RPC_CALL_REFLECTION_CALL_H_
#define LOCKSTEP_SERVER_RPC_CALL_REFLECTION_CALL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/call/incoming_call.h"
#include "lockstep/server/rpc/call/visitors.h"
#include "proto/grpc/reflection.grpc.pb.h"

namespace lockstep {

// Answers one question about the protos that are linked into this program; `services` are the names in its list.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request, const std::vector<std::string>& services);

// A stream of such questions on the server's completion queue. Owns itself while an operation is pending.
class ReflectionCall final : public CompletionTag, public Visitor, public std::enable_shared_from_this<ReflectionCall> {
 public:
  // "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
  static std::string Method();
  // The pointers must outlive the call.
  static void Start(std::unique_ptr<IncomingCall> call, const std::vector<std::string>* services, Visitors* visitors);

  void OnEvent(bool ok) override;
  void OnEvicted() override { call_->context.TryCancel(); }

 private:
  enum class State { kReading, kWriting, kFinishing };

  ReflectionCall(std::unique_ptr<IncomingCall> call, const std::vector<std::string>* services, Visitors* visitors)
      : call_(std::move(call)), services_(*services), visitors_(visitors) {}

  void Read();
  void Answer();
  void Finish(const grpc::Status& status);

  const std::unique_ptr<IncomingCall> call_;
  const std::vector<std::string>& services_;
  Visitors* const visitors_;
  grpc::ByteBuffer message_;
  State state_ = State::kReading;
  std::shared_ptr<ReflectionCall> self_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_REFLECTION_CALL_H_
