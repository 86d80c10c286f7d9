#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/transport/connection/status_conversion.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/plain_channel.h"
#include "tests/benchmark/exchange/naive.grpc.pb.h"

namespace lockstep {
namespace benchmark {
namespace {

class NaiveServer : public ExchangeServer, private Naive::Service {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeServer>> Start(const ExchangeSpec& spec) {
    auto server = std::make_unique<NaiveServer>();
    server->workers_ = spec.workers;
    server->sum_.resize(BytesOf(spec.model) / sizeof(float));
    server->values_.resize(server->sum_.size());
    int port = 0;
    server->address_ = spec.unix_socket ? absl::StrCat("unix:", spec.directory, "/naive") : "127.0.0.1:0";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(server->address_, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(server.get());
    builder.SetMaxReceiveMessageSize(-1);
    server->server_ = builder.BuildAndStart();
    if (server->server_ == nullptr) return absl::UnavailableError("the naive server does not start");
    if (!spec.unix_socket) server->address_ = absl::StrCat("127.0.0.1:", port);
    return std::unique_ptr<ExchangeServer>(std::move(server));
  }

  std::string address() const override { return address_; }

 private:
  grpc::Status Step(grpc::ServerContext*, const NaiveRequest* request, NaiveReply* reply) override {
    MutexLock lock(&mutex_);
    const char* const gradient = request->gradient().data();
    for (size_t i = 0; i < sum_.size(); ++i) {
      float value;
      std::memcpy(&value, gradient + i * sizeof(float), sizeof(float));
      sum_[i] = (arrived_ == 0 ? 0 : sum_[i]) + value;
    }
    const int64_t step = step_;
    if (++arrived_ == workers_) {
      for (size_t i = 0; i < sum_.size(); ++i) values_[i] -= sum_[i] / static_cast<float>(workers_) * 0.01f;
      arrived_ = 0;
      ++step_;
      applied_.SignalAll();
    }
    while (step_ == step) applied_.Wait(&mutex_);
    reply->set_values(values_.data(), values_.size() * sizeof(float));
    return grpc::Status::OK;
  }

  int workers_ = 1;
  std::string address_;
  Mutex mutex_;
  CondVar applied_;
  std::vector<float> sum_;
  std::vector<float> values_;
  int arrived_ = 0;
  int64_t step_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class NaiveWorker : public ExchangeWorker {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeWorker>> Connect(const ExchangeSpec& spec, const std::string& address,
                                                                 int index) {
    auto worker = std::make_unique<NaiveWorker>();
    worker->stub_ = Naive::NewStub(PlainChannel(address));
    worker->gradient_.resize(BytesOf(spec.model) / sizeof(float));
    worker->values_.resize(worker->gradient_.size());
    return std::unique_ptr<ExchangeWorker>(std::move(worker));
  }

  absl::Status Step(int n) override {
    for (int i = 0; i < n; ++i) {
      grpc::ClientContext context;
      NaiveRequest request;
      NaiveReply reply;
      request.set_gradient(gradient_.data(), gradient_.size() * sizeof(float));
      const grpc::Status status = stub_->Step(&context, request, &reply);
      if (!status.ok()) return FromGrpc(status);
      std::memcpy(values_.data(), reply.values().data(), reply.values().size());
    }
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<Naive::Stub> stub_;
  std::vector<float> gradient_;
  std::vector<float> values_;
};

}  // namespace

Exchange NaiveExchange() { return {NaiveServer::Start, NaiveWorker::Connect}; }

}  // namespace benchmark
}  // namespace lockstep
