#include "server/rpc/chief_server.h"

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/mutex.h"
#include "common/cluster/master_address.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/health.grpc.pb.h"
#include "server/rpc/living_calls.h"
#include "server/rpc/queue_threads.h"
#include "server/rpc/reflection_call.h"
#include "server/rpc/step_call.h"
#include "server/rpc/unary_call.h"

namespace lockstep {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Whatever a stranger sends, a message takes no more memory than this. A worker's frames have a few MiB; the largest
// that makes sense has the reports of all slots.
constexpr int kMaxReceivedBytes = 256 << 20;
constexpr int kMaxCallsPerConnection = 128;

// Answers the control calls. All but OpenSession only look at the chief's state.
class ControlCalls {
 public:
  explicit ControlCalls(Chief* chief) : chief_(chief) {}

  void Accept(ChiefServiceBase* service, grpc::ServerCompletionQueue* queue, LivingCalls* living) {
    UnaryCall<ChiefServiceBase, GetRunRequest, GetRunReply>::Accept(
        service, queue, living, &ChiefServiceBase::RequestGetRun,
        [this](const GetRunRequest&, GetRunReply* reply, auto done) {
          *reply = chief_->GetRun();
          done(absl::OkStatus());
        });
    UnaryCall<ChiefServiceBase, OpenSessionRequest, OpenSessionReply>::Accept(
        service, queue, living, &ChiefServiceBase::RequestOpenSession,
        [this](const OpenSessionRequest& request, OpenSessionReply* reply, auto done) {
          OpenSession(request, reply, std::move(done));
        });
    UnaryCall<ChiefServiceBase, HeartbeatRequest, HeartbeatReply>::Accept(
        service, queue, living, &ChiefServiceBase::RequestHeartbeat,
        [this](const HeartbeatRequest& request, HeartbeatReply* reply, auto done) {
          auto heartbeat = chief_->Heartbeat(request);
          if (heartbeat.ok()) *reply = *std::move(heartbeat);
          done(heartbeat.status());
        });
    UnaryCall<ChiefServiceBase, GetStatusRequest, RunStatus>::Accept(
        service, queue, living, &ChiefServiceBase::RequestGetStatus,
        [this](const GetStatusRequest&, RunStatus* reply, auto done) {
          *reply = chief_->GetStatus();
          done(absl::OkStatus());
        });
  }

  // Blocks until no OpenSession is under way.
  void AwaitOpening() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (opening_ > 0) opened_.Wait(&mutex_);
  }

 private:
  static constexpr int kMaxOpening = 64;

  // Restoring a model takes time, so each call has a thread of its own; they are rare.
  void OpenSession(const OpenSessionRequest& request, OpenSessionReply* reply,
                   std::function<void(const absl::Status&)> done) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool too_many = false;
    {
      MutexLock lock(&mutex_);
      too_many = opening_ >= kMaxOpening;
      if (!too_many) ++opening_;
    }
    if (too_many) {
      done(absl::UnavailableError("too many sessions are being opened at once"));
      return;
    }
    std::thread([this, &request, reply, done = std::move(done)] {
      auto session = chief_->OpenSession(request);
      if (session.ok()) *reply = *std::move(session);
      done(session.status());
      MutexLock lock(&mutex_);
      --opening_;
      opened_.SignalAll();
    }).detach();
  }

  Chief* const chief_;
  Mutex mutex_;
  CondVar opened_;
  int opening_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A server that answers is healthy: a chief that does not know its model yet waits for a worker to bring it.
void CheckHealth(const HealthCheckRequest& request, HealthCheckResponse* reply,
                 const std::function<void(const absl::Status&)>& done) {
  if (!request.service().empty() && request.service() != ChiefService::service_full_name()) {
    done(absl::NotFoundError(absl::StrCat("no service ", request.service())));
    return;
  }
  reply->set_status(HealthCheckResponse::SERVING);
  done(absl::OkStatus());
}

class GrpcChiefServer : public ChiefServer {
 public:
  explicit GrpcChiefServer(Chief* chief) : chief_(chief), control_(chief) {}

  absl::Status Start(const Options& options) {
    // gRPC's own health and reflection services would bring threads that wait for events of all sockets, those of the
    // Step streams included, and hand each over to a thread of our queue: 150 us for the smallest step, not 80.
    grpc::EnableDefaultHealthCheckService(false);
    grpc::ServerBuilder builder;
    for (const absl::string_view address : absl::StrSplit(options.address, ',')) {
      const bool first_port = !IsUnixAddress(address) && address_.empty();
      builder.AddListeningPort(std::string(address), grpc::InsecureServerCredentials(), first_port ? &port_ : nullptr);
      if (first_port) address_ = std::string(address);
    }
    builder.RegisterService(&service_);
    builder.RegisterService(&health_);
    builder.RegisterService(&reflection_);
    builder.SetMaxReceiveMessageSize(kMaxReceivedBytes);
    builder.SetMaxSendMessageSize(-1);
    // Exactly one server on an address.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
    // A cut network is noticed, and a silent stranger's connection does not stay for ever.
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(absl::ToInt64Milliseconds(options.silence_limit)));
    // Seconds: a ping that falls due while a connection is still being made can break gRPC 1.51's first write.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 300000);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", options.address, " (is the port in use?)"));
    }
    if (address_.empty()) {
      address_ = options.address.substr(0, options.address.find(','));
    } else {
      address_ = absl::StrCat(address_.substr(0, address_.rfind(':')), ":", port_);
    }
    StepCall::Options step;
    step.service = &service_;
    step.queue = queue_.get();
    step.chief = chief_;
    step.living = &calls_;
    step.silence_limit = options.silence_limit;
    StepCall::Accept(step);
    control_.Accept(&service_, queue_.get(), &calls_);
    UnaryCall<Health::AsyncService, HealthCheckRequest, HealthCheckResponse>::Accept(
        &health_, queue_.get(), &calls_, &Health::AsyncService::RequestCheck, CheckHealth);
    ReflectionCall::Accept(&reflection_, queue_.get(), &calls_,
                           {ChiefService::service_full_name(), Health::service_full_name(),
                            grpc::reflection::v1alpha::ServerReflection::service_full_name()});
    threads_ = std::make_unique<QueueThreads>(queue_.get(), options.step_threads);
    return absl::OkStatus();
  }

  ~GrpcChiefServer() override {
    // The deadline has passed already: streams that are still open are cancelled at once.
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    control_.AwaitOpening();
    // A queue that is shut down must not be given another operation, and a call that is cancelled still finishes.
    calls_.AwaitNone();
    if (queue_ != nullptr) queue_->Shutdown();
    if (queue_ != nullptr && threads_ == nullptr) QueueThreads(queue_.get(), 1);  // drains it
    threads_.reset();
  }

  const std::string& address() const override { return address_; }
  int port() const override { return port_; }

 private:
  Chief* const chief_;
  ChiefServiceBase service_;
  ControlCalls control_;
  LivingCalls calls_;
  Health::AsyncService health_;
  ReflectionCall::Service reflection_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<QueueThreads> threads_;
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
