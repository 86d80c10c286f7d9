#ifndef LOCKSTEP_SERVER_RPC_TESTING_LOOPBACK_SERVER_H_
#define LOCKSTEP_SERVER_RPC_TESTING_LOOPBACK_SERVER_H_

#include <map>
#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "lockstep/server/rpc/admission/call_acceptor.h"
#include "lockstep/server/rpc/call/call_counts.h"
#include "lockstep/server/rpc/call/in_flight_calls.h"
#include "lockstep/server/rpc/call/leader_follower_pool.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// A server for the given methods on one completion queue, and an in-process channel to it, without a socket. For use by
// one thread.
class LoopbackServer {
 public:
  explicit LoopbackServer(std::map<std::string, CallAcceptor::Handler> handlers);
  ~LoopbackServer();

  std::shared_ptr<grpc::Channel> channel() const { return channel_; }
  // Makes a unary call whose request and reply are raw bytes.
  grpc::Status Call(const std::string& method, const std::string& request, std::string* reply);
  // Ends all calls, and returns all that there were as RunCounters.calls. Only the destructor may be called after this.
  v1::RunCounters Stop();

 private:
  InFlightCalls calls_;
  CallCounts ended_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<CallAcceptor> acceptor_;
  std::unique_ptr<LeaderFollowerPool> threads_;
  std::shared_ptr<grpc::Channel> channel_;
};

// The client's end of a stream of raw messages. Each operation blocks until it has completed.
class LoopbackStream {
 public:
  LoopbackStream(std::shared_ptr<grpc::Channel> channel, const std::string& method);
  ~LoopbackStream();

  bool Write(const std::string& message);
  bool WritesDone();
  // Returns false if the stream has ended.
  bool Read(std::string* message);
  grpc::Status Finish();

 private:
  bool Await();

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_TESTING_LOOPBACK_SERVER_H_
