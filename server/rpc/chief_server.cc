#include "server/rpc/chief_server.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/transport/status_conversion.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/step_call.h"

namespace lockstep {
namespace {

// The control calls. All but OpenSession only look at the chief's state.
class ControlService : public ChiefServiceBase {
 public:
  explicit ControlService(Chief* chief) : chief_(chief) {}

  // Waits for the OpenSession calls that are under way.
  ~ControlService() override {
    MutexLock lock(&mutex_);
    while (opening_ > 0) opened_.Wait(&mutex_);
  }

  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext* context, const GetRunRequest*,
                                   GetRunReply* reply) override {
    *reply = chief_->GetRun();
    return Answer(context, absl::OkStatus());
  }

  // Restoring a model takes time, so each call has a thread of its own; they are rare.
  grpc::ServerUnaryReactor* OpenSession(grpc::CallbackServerContext* context, const OpenSessionRequest* request,
                                        OpenSessionReply* reply) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    {
      MutexLock lock(&mutex_);
      if (opening_ >= kMaxOpening) {
        reactor->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "too many sessions are being opened at once"));
        return reactor;
      }
      ++opening_;
    }
    std::thread([this, request, reply, reactor] {
      auto session = chief_->OpenSession(*request);
      if (session.ok()) *reply = *std::move(session);
      reactor->Finish(ToGrpc(session.status()));
      MutexLock lock(&mutex_);
      --opening_;
      opened_.SignalAll();
    }).detach();
    return reactor;
  }

  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context, const HeartbeatRequest* request,
                                      HeartbeatReply* reply) override {
    auto heartbeat = chief_->Heartbeat(*request);
    if (heartbeat.ok()) *reply = *std::move(heartbeat);
    return Answer(context, heartbeat.status());
  }

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const GetStatusRequest*,
                                      RunStatus* reply) override {
    *reply = chief_->GetStatus();
    return Answer(context, absl::OkStatus());
  }

 private:
  static constexpr int kMaxOpening = 64;

  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const absl::Status& status) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(status));
    return reactor;
  }

  Chief* const chief_;
  Mutex mutex_;
  CondVar opened_;
  int opening_ ABSL_GUARDED_BY(mutex_) = 0;
};

class GrpcChiefServer : public ChiefServer {
 public:
  explicit GrpcChiefServer(Chief* chief) : chief_(chief), service_(chief) {}

  absl::Status Start(const Options& options) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    // Exactly one server on an address.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // A cut network is noticed, and a silent stranger's connection does not stay for ever.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 300000);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", options.address, " (is the port in use?)"));
    }
    address_ = options.address;
    const size_t colon = address_.rfind(':');
    if (!absl::StartsWith(address_, "unix:") && colon != std::string::npos) {
      address_ = absl::StrCat(address_.substr(0, colon), ":", port_);
    }
    StepCall::Accept(&service_, queue_.get(), chief_, &step_calls_);
    for (int i = 0; i < options.step_threads; ++i) {
      threads_.emplace_back([this] {
        void* tag;
        bool ok;
        while (queue_->Next(&tag, &ok)) StepCall::OnEvent(tag, ok);
      });
    }
    return absl::OkStatus();
  }

  ~GrpcChiefServer() override {
    // The deadline has passed already: streams that are still open are cancelled at once.
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    // A queue that is shut down must not be given another operation, and a call that is cancelled still finishes.
    step_calls_.AwaitNone();
    if (queue_ != nullptr) queue_->Shutdown();
    for (std::thread& thread : threads_) thread.join();
  }

  const std::string& address() const override { return address_; }
  int port() const override { return port_; }

 private:
  Chief* const chief_;
  ControlService service_;
  StepCall::Living step_calls_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;
  std::string address_;
  int port_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChiefServer>> ChiefServer::Start(const Options& options, Chief* chief) {
  auto server = std::make_unique<GrpcChiefServer>(chief);
  const absl::Status status = server->Start(options);
  if (!status.ok()) return status;
  return std::unique_ptr<ChiefServer>(std::move(server));
}

}  // namespace lockstep
