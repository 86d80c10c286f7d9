#ifndef LOCKSTEP_SERVER_RPC_REFLECTION_CALL_H_
#define LOCKSTEP_SERVER_RPC_REFLECTION_CALL_H_

#include <string>
#include <vector>

#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "proto/reflection.grpc.pb.h"
#include "server/rpc/living_calls.h"
#include "server/rpc/queue_event.h"

namespace lockstep {

// Answers one question about the protos that are linked into this program; `services` are the names to be listed.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request, const std::vector<std::string>& services);

// One stream of such questions on the server's completion queue. Owns itself.
class ReflectionCall final : public QueueEvent {
 public:
  using Service = grpc::reflection::v1alpha::ServerReflection::AsyncService;

  // Waits for the next stream; when it comes, another ReflectionCall is made to wait.
  static void Accept(Service* service, grpc::ServerCompletionQueue* queue, LivingCalls* living,
                     std::vector<std::string> services);

  void OnEvent(bool ok) override;

 private:
  enum class State { kAccepting, kReading, kWriting, kFinishing };

  ReflectionCall(Service* service, grpc::ServerCompletionQueue* queue, LivingCalls* living,
                 std::vector<std::string> services);

  Service* const service_;
  grpc::ServerCompletionQueue* const queue_;
  LivingCalls* const living_;
  const LivingCalls::Member member_;
  const std::vector<std::string> services_;
  State state_ = State::kAccepting;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::reflection::v1alpha::ServerReflectionResponse,
                                grpc::reflection::v1alpha::ServerReflectionRequest>
      stream_;
  grpc::reflection::v1alpha::ServerReflectionRequest request_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_REFLECTION_CALL_H_
