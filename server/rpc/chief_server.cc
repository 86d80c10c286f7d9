#include "server/rpc/chief_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/cluster/master_address.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/chief.grpc.pb.h"
#include "proto/health.grpc.pb.h"
#include "server/rpc/call_acceptor.h"
#include "server/rpc/connection_listener.h"
#include "server/rpc/living_calls.h"
#include "server/rpc/queue_threads.h"
#include "server/rpc/reflection_call.h"
#include "server/rpc/step_call.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/visitors.h"

namespace lockstep {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// docs/wire.md and proto/chief.proto tell these to clients.
constexpr int kMaxMessageBytes = 8 << 20;
constexpr int kMaxCallsPerConnection = 128;
// A connection without calls ends after it: a worker has a Step stream, and others connect again.
constexpr int kIdleMilliseconds = 30000;
constexpr size_t kMaxVisitors = 64;
// What gRPC may hold for the sockets of all peers: the visitors' messages and as much again for what their connections
// buffer, and for each slot two workers with twice a message. Beyond it gRPC reads less at once, closes connections
// without calls, and then ends calls, a worker's perhaps, which comes back.
constexpr size_t kVisitorsBytes = 2 * kMaxVisitors * kMaxMessageBytes;
constexpr size_t kSlotBytes = 4 * kMaxMessageBytes;

std::string MethodName(absl::string_view service, absl::string_view method) {
  return absl::StrCat("/", service, "/", method);
}

// Opens sessions. Making or restoring a model takes time, so each call has a thread of its own; they are rare. What
// the requests of all of them take is bounded.
class SessionOpener {
 public:
  explicit SessionOpener(Chief* chief) : chief_(chief) {}

  void Open(std::string request, UnaryCall::Done done) ABSL_LOCKS_EXCLUDED(mutex_) {
    const size_t bytes = request.size();
    if (!Begin(bytes)) {
      done(absl::UnavailableError("too many sessions are being opened at once"));
      return;
    }
    std::thread([this, bytes, request = std::move(request), done = std::move(done)]() mutable {
      done(Answer(std::exchange(request, {})));
      MutexLock lock(&mutex_);
      --opening_;
      bytes_ -= bytes;
      opened_.SignalAll();
    }).detach();
  }

  // Blocks until nobody is being opened one.
  void AwaitNone() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (opening_ > 0) opened_.Wait(&mutex_);
  }

 private:
  static constexpr int kMaxOpening = 64;
  static constexpr size_t kMaxBytes = 2 * kMaxMessageBytes;
  // Parsed, a model takes several times its bytes: variables have short names.
  static constexpr uint64_t kMaxParsedBytes = 8 * kMaxMessageBytes;

  bool Begin(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (opening_ >= kMaxOpening || bytes_ + bytes > kMaxBytes) return false;
    ++opening_;
    bytes_ += bytes;
    return true;
  }

  absl::StatusOr<std::string> Answer(std::string bytes) {
    OpenSessionRequest request;
    RETURN_IF_ERROR(ParseRequest(bytes, kMaxParsedBytes, &request));
    bytes = std::string();
    ASSIGN_OR_RETURN(const OpenSessionReply reply, chief_->OpenSession(request));
    return reply.SerializeAsString();
  }

  Chief* const chief_;
  Mutex mutex_;
  CondVar opened_;
  int opening_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of their requests
};

// A server that answers is healthy: a chief that does not know its model yet waits for a worker to bring it.
absl::Status CheckHealth(const HealthCheckRequest& request, HealthCheckResponse* reply) {
  if (!request.service().empty() && request.service() != ChiefService::service_full_name()) {
    return absl::NotFoundError(absl::StrCat("no service ", request.service()));
  }
  reply->set_status(HealthCheckResponse::SERVING);
  return absl::OkStatus();
}

class GrpcChiefServer : public ChiefServer {
 public:
  explicit GrpcChiefServer(Chief* chief) : chief_(chief), opener_(chief) { AddUnaryMethods(); }

  absl::Status Start(const Options& options) {
    // gRPC's own health and reflection services would bring threads that wait for events of all sockets, those of the
    // Step streams included, and hand each over to a thread of our queue: 150 us for the smallest step, not 80.
    grpc::EnableDefaultHealthCheckService(false);
    grpc::ServerBuilder builder;
    RETURN_IF_ERROR(Listen(options.address));
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
    builder.RegisterAsyncGenericService(&service_);
    SetOptions(options, &builder);
    const auto slots = static_cast<size_t>(chief_->GetRun().config().training().replicas_to_aggregate());
    builder.SetResourceQuota(grpc::ResourceQuota("chief").Resize(kVisitorsBytes + slots * kSlotBytes));
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::UnavailableError(absl::StrCat("cannot serve on ", options.address));
    acceptor_ = std::make_unique<CallAcceptor>(&service_, queue_.get(), &calls_, Handlers(options));
    acceptor_->Accept();
    threads_ = std::make_unique<QueueThreads>(queue_.get(), options.step_threads);
    rlimit files = {};
    getrlimit(RLIMIT_NOFILE, &files);
    listener_->Start(ConnectionListener::BoundFor(files.rlim_cur), [this](int listener, int connection) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.listener_fd = listener;
      parameters.fd = connection;
      connections_->HandleNewConnection(&parameters);
    });
    return absl::OkStatus();
  }
  ~GrpcChiefServer() override {
    // gRPC would leave a connection open that came when its server has shut down.
    listener_.reset();
    // The deadline has passed already: streams that are still open are cancelled at once.
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    opener_.AwaitNone();
    // A queue that is shut down must not be given another operation, and a call that is cancelled still finishes.
    calls_.AwaitNone();
    if (queue_ != nullptr) queue_->Shutdown();
    if (queue_ != nullptr && threads_ == nullptr) QueueThreads(queue_.get(), 1);  // drains it
    threads_.reset();
  }

  const std::string& address() const override { return address_; }
  int port() const override { return port_; }

 private:
  // Sets the address and the port that clients are told.
  absl::Status Listen(const std::string& addresses) {
    const std::vector<std::string> all = absl::StrSplit(addresses, ',');
    ASSIGN_OR_RETURN(listener_, ConnectionListener::Listen(all));
    port_ = listener_->port();
    address_ = all.front();
    const auto first =
        std::find_if(all.begin(), all.end(), [](const auto& address) { return !IsUnixAddress(address); });
    if (first != all.end()) address_ = absl::StrCat(first->substr(0, first->rfind(':')), ":", port_);
    return absl::OkStatus();
  }

  static void SetOptions(const Options& options, grpc::ServerBuilder* builder) {
    builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder->SetMaxSendMessageSize(-1);
    // A message of a few bytes could become any number of them.
    builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
    // A cut network is noticed, and a silent stranger's connection does not stay for ever.
    builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                                static_cast<int>(absl::ToInt64Milliseconds(options.silence_limit)));
    // Seconds: a ping that falls due while a connection is still being made can break gRPC 1.51's first write.
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMilliseconds);
  }

  // All but OpenSession only look at the chief's state.
  void AddUnaryMethods() {
    const absl::string_view chief = ChiefService::service_full_name();
    unary_[MethodName(chief, "GetRun")] =
        MethodOf<GetRunRequest, GetRunReply>([this](const GetRunRequest&, GetRunReply* reply) {
          *reply = chief_->GetRun();
          return absl::OkStatus();
        });
    unary_[MethodName(chief, "Heartbeat")] =
        MethodOf<HeartbeatRequest, HeartbeatReply>([this](const HeartbeatRequest& request, HeartbeatReply* reply) {
          ASSIGN_OR_RETURN(*reply, chief_->Heartbeat(request));
          return absl::OkStatus();
        });
    unary_[MethodName(chief, "GetStatus")] =
        MethodOf<GetStatusRequest, RunStatus>([this](const GetStatusRequest&, RunStatus* reply) {
          *reply = chief_->GetStatus();
          return absl::OkStatus();
        });
    unary_[MethodName(Health::service_full_name(), "Check")] =
        MethodOf<HealthCheckRequest, HealthCheckResponse>(CheckHealth);
    UnaryCall::Method& open = unary_[MethodName(chief, "OpenSession")];
    open.max_bytes = kMaxMessageBytes;
    open.lasting = true;
    open.handler = [this](std::string request, UnaryCall::Done done) {
      opener_.Open(std::move(request), std::move(done));
    };
  }

  std::map<std::string, CallAcceptor::Handler> Handlers(const Options& options) {
    std::map<std::string, CallAcceptor::Handler> handlers;
    for (const auto& entry : unary_) {
      handlers[entry.first] = [this, method = &entry.second](std::unique_ptr<IncomingCall> call) {
        UnaryCall::Start(std::move(call), method, &visitors_);
      };
    }
    StepCall::Options step;
    step.queue = queue_.get();
    step.chief = chief_;
    step.visitors = &visitors_;
    step.silence_limit = options.silence_limit;
    handlers[MethodName(ChiefService::service_full_name(), "Step")] = [step](std::unique_ptr<IncomingCall> call) {
      StepCall::Start(step, std::move(call));
    };
    handlers[ReflectionCall::Method()] = [this](std::unique_ptr<IncomingCall> call) {
      ReflectionCall::Start(std::move(call), &services_, &visitors_);
    };
    return handlers;
  }

  const std::vector<std::string> services_ = {ChiefService::service_full_name(), Health::service_full_name(),
                                              grpc::reflection::v1alpha::ServerReflection::service_full_name()};
  Chief* const chief_;
  SessionOpener opener_;
  LivingCalls calls_;
  Visitors visitors_{kMaxVisitors};
  std::map<std::string, UnaryCall::Method> unary_;
  // All methods: who serves one decides how much of its messages is read.
  grpc::AsyncGenericService service_;
  std::unique_ptr<CallAcceptor> acceptor_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<ConnectionListener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
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
