#include "lockstep/server/rpc/testing/loopback_server.h"

#include <chrono>
#include <utility>

#include "glog/logging.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/slice.h"

namespace lockstep {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  CHECK(buffer.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

}  // namespace

LoopbackServer::LoopbackServer(std::map<std::string, CallAcceptor::Handler> handlers) {
  grpc::ServerBuilder builder;
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  CHECK(server_ != nullptr);
  acceptor_ = std::make_unique<CallAcceptor>(&service_, queue_.get(), &calls_, &ended_, std::move(handlers));
  acceptor_->Accept();
  threads_ = std::make_unique<LeaderFollowerPool>(queue_.get(), 2);
  channel_ = server_->InProcessChannel(grpc::ChannelArguments());
}

LoopbackServer::~LoopbackServer() {
  if (threads_ != nullptr) Stop();
}

v1::RunCounters LoopbackServer::Stop() {
  server_->Shutdown(std::chrono::system_clock::now());
  calls_.WaitUntilNone();
  queue_->Shutdown();
  threads_.reset();
  v1::RunCounters counters;
  ended_.Fill(&counters);
  return counters;
}

grpc::Status LoopbackServer::Call(const std::string& method, const std::string& request, std::string* reply) {
  LoopbackStream stream(channel_, method);
  stream.Write(request);
  stream.WritesDone();
  stream.Read(reply);
  return stream.Finish();
}

LoopbackStream::LoopbackStream(std::shared_ptr<grpc::Channel> channel, const std::string& method)
    : stub_(std::move(channel)), stream_(stub_.PrepareCall(&context_, method, &queue_)) {
  stream_->StartCall(this);
  Await();
}

LoopbackStream::~LoopbackStream() {
  context_.TryCancel();
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) continue;
}

bool LoopbackStream::Await() {
  void* tag;
  bool ok = false;
  CHECK(queue_.Next(&tag, &ok));
  return ok;
}

bool LoopbackStream::Write(const std::string& message) {
  stream_->Write(ToBuffer(message), this);
  return Await();
}

bool LoopbackStream::WritesDone() {
  stream_->WritesDone(this);
  return Await();
}

bool LoopbackStream::Read(std::string* message) {
  grpc::ByteBuffer buffer;
  stream_->Read(&buffer, this);
  if (!Await()) return false;
  *message = ToString(buffer);
  return true;
}

grpc::Status LoopbackStream::Finish() {
  grpc::Status status;
  stream_->Finish(&status, this);
  Await();
  return status;
}

}  // namespace lockstep
