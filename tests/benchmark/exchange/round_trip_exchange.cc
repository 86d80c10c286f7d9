#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/plain_channel.h"

namespace lockstep {
namespace benchmark {
namespace {

grpc::ByteBuffer FewBytes() {
  const grpc::Slice slice("0123456789abcdef");
  return grpc::ByteBuffer(&slice, 1);
}

// A stream that sends back every message.
struct Echo {
  enum class State { kAccepting, kReading, kWriting };
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  grpc::ByteBuffer message;
  State state = State::kAccepting;
};

class RoundTripServer : public ExchangeServer {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeServer>> Start(const ExchangeSpec& spec) {
    auto server = std::make_unique<RoundTripServer>();
    int port = 0;
    server->address_ = spec.unix_socket ? absl::StrCat("unix:", spec.directory, "/echo") : "127.0.0.1:0";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(server->address_, grpc::InsecureServerCredentials(), &port);
    builder.RegisterAsyncGenericService(&server->service_);
    server->queue_ = builder.AddCompletionQueue();
    server->server_ = builder.BuildAndStart();
    if (server->server_ == nullptr) return absl::UnavailableError("the echo server does not start");
    if (!spec.unix_socket) server->address_ = absl::StrCat("127.0.0.1:", port);
    RoundTripServer* const self = server.get();
    std::thread([self] { self->Serve(); }).detach();
    return std::unique_ptr<ExchangeServer>(std::move(server));
  }

  std::string address() const override { return address_; }

 private:
  void Accept() {
    auto* const echo = new Echo();
    service_.RequestCall(&echo->context, &echo->stream, queue_.get(), queue_.get(), echo);
  }

  void Serve() {
    Accept();
    void* tag;
    bool ok;
    while (queue_->Next(&tag, &ok)) {
      auto* const echo = static_cast<Echo*>(tag);
      if (!ok) continue;  // the process is about to end
      if (echo->state == Echo::State::kAccepting) Accept();
      if (echo->state == Echo::State::kReading) {
        echo->state = Echo::State::kWriting;
        echo->stream.Write(echo->message, echo);
      } else {
        echo->state = Echo::State::kReading;
        echo->stream.Read(&echo->message, echo);
      }
    }
  }

  std::string address_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

class RoundTripWorker : public ExchangeWorker {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeWorker>> Connect(const ExchangeSpec& spec, const std::string& address,
                                                                 int index) {
    auto worker = std::make_unique<RoundTripWorker>();
    worker->stub_ = std::make_unique<grpc::GenericStub>(PlainChannel(address));
    worker->stream_ = worker->stub_->PrepareCall(&worker->context_, "/echo", &worker->queue_);
    worker->stream_->StartCall(worker.get());
    if (!worker->Next()) return absl::UnavailableError(address);
    return std::unique_ptr<ExchangeWorker>(std::move(worker));
  }

  absl::Status Step(int n) override {
    for (int i = 0; i < n; ++i) {
      stream_->Read(&received_, this);
      stream_->Write(FewBytes(), this);
      if (!Next() || !Next()) return absl::UnavailableError("the echo stream broke");
    }
    return absl::OkStatus();
  }

 private:
  bool Next() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer received_;
};

}  // namespace

Exchange RoundTripExchange() { return {RoundTripServer::Start, RoundTripWorker::Connect}; }

}  // namespace benchmark
}  // namespace lockstep
