#include "lockstep/server/rpc/chief_server.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/common/transport/connection/grpc_lifetime.h"
#include "lockstep/common/transport/connection/keepalive.h"
#include "lockstep/server/rpc/admission/call_acceptor.h"
#include "lockstep/server/rpc/admission/connection_listener.h"
#include "lockstep/server/rpc/admission/http2_limits.h"
#include "lockstep/server/rpc/call/call_counts.h"
#include "lockstep/server/rpc/call/in_flight_calls.h"
#include "lockstep/server/rpc/call/incoming_call.h"
#include "lockstep/server/rpc/call/leader_follower_pool.h"
#include "lockstep/server/rpc/chief_methods.h"

namespace lockstep {
namespace {

// Maximum number of calls per connection. docs/wire.md and proto/lockstep/v1/chief.proto document it for clients.
constexpr int kMaxCallsPerConnection = 128;
// A connection without calls is closed after this time. Workers have a Step stream, and other clients reconnect.
constexpr int kIdleMilliseconds = 30000;
// gRPC reads ahead up to kReadAheadBytes over all streams together, and each stream's share is at least
// kLeastReadAheadBytes. Without this bound, it reads nearly all of the contributions that wait for admission. With up
// to kFewSlots slots there is no bound: few contributions wait, and one worker over loopback takes a quarter longer for
// 100 MB if gRPC cannot choose its windows.
constexpr int64_t kReadAheadBytes = 64 << 20, kLeastReadAheadBytes = 1 << 20, kFewSlots = 4;
// Frames larger than the default of 16 KiB reduce the cost of a contribution.
constexpr int kFrameBytes = 1 << 20;
// Sizes of the buffers that connections read into, if they have a size of their own (InitializeProcess). Each
// connection keeps one buffer, and a message that waits keeps all of its buffers.
constexpr int kLeastReadBytes = 32 << 10, kMostReadBytes = 256 << 10;
// Maximum memory that gRPC may hold for the sockets of all peers: the messages of unauthenticated calls plus the same
// amount for the buffers of their connections and, for each slot, two workers with two messages each. Beyond this
// limit, gRPC reads less at a time and closes connections without calls. If that is not enough, it ends calls, possibly
// a worker's, which then reconnects.
constexpr size_t kUnauthenticatedBytes = 2 * ChiefMethods::kMaxUnauthenticatedCalls * ChiefMethods::kMaxMessageBytes;
constexpr size_t kSlotBytes = 4 * ChiefMethods::kMaxMessageBytes;

// Minimum number of slots assumed if workers read input streams, because the number of such workers is not known until
// they connect.
constexpr int64_t kStreamSlots = kReadAheadBytes / kLeastReadAheadBytes;

// Returns the number of slots for which gRPC's memory is bounded.
int64_t SlotsOf(const config::v1::TrainingConfig& training) {
  const int64_t slots = training.replicas_to_aggregate();
  return ReadsStreams(training) ? std::max(kStreamSlots, slots) : slots;
}

void SetOptions(const ChiefServer::Options& options, int64_t slots, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(ChiefMethods::kMaxMessageBytes));
  builder->SetMaxSendMessageSize(-1);
  // Compression is off, because a message of a few bytes could expand to any size.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);  // nothing serves it
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  if (slots > kFewSlots) {
    builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                                static_cast<int>(std::max(kLeastReadAheadBytes, kReadAheadBytes / slots)));
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  }
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              static_cast<int>(absl::ToInt64Milliseconds(options.silence_limit)));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMilliseconds);
  SetServerKeepalive(builder);
  builder->AddChannelArgument(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, kLeastReadBytes);
  builder->AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMostReadBytes);
  builder->SetResourceQuota(
      grpc::ResourceQuota("chief").Resize(kUnauthenticatedBytes + static_cast<size_t>(slots) * kSlotBytes));
}

bool IsUnixSocket(int socket) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

// Returns all values of a property, concatenated.
std::string PropertyOf(const grpc::AuthContext& context, const char* name) {
  std::string text;
  for (const grpc::string_ref& value : context.FindPropertyValues(name)) text.append(value.data(), value.size());
  return text;
}

// Sets the peer of a call that has begun, from its connection's certificates and its headers. Errors: as for
// PeerAuthority::Admit, in which case the call must end.
absl::Status AdmitCall(PeerAuthority* authority, IncomingCall* call) {
  if (authority->trusts_all()) return absl::OkStatus();
  const std::shared_ptr<const grpc::AuthContext> context = call->context.auth_context();
  PeerAuthority::Evidence evidence;
  std::string certificates;
  if (context != nullptr && PropertyOf(*context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) != "insecure") {
    evidence.over_tls = true;
    // The second property lacks the peer's own certificate, or repeats it.
    certificates = absl::StrCat(PropertyOf(*context, GRPC_X509_PEM_CERT_PROPERTY_NAME),
                                PropertyOf(*context, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME));
    evidence.certificate = certificates;
  }
  const auto& headers = call->context.client_metadata();
  const auto authorization = headers.find("authorization");
  if (authorization != headers.end()) {
    evidence.authorization = {authorization->second.data(), authorization->second.size()};
  }
  ASSIGN_OR_RETURN(call->peer, authority->Admit(evidence, call->context.method()));
  return absl::OkStatus();
}

}  // namespace

// Members are declared in the order in which they are needed. They are destroyed in reverse order, after the destructor
// has run.
struct ChiefServer::Impl {
  Impl(const Options& options, Chief* chief, std::unique_ptr<PeerAuthority> peers)
      : authority(std::move(peers)), methods(chief, authority.get(), &ended, options.call_patience, options.executor) {}
  ~Impl();

  absl::Status Listen(const std::string& addresses);
  absl::Status Serve(const Options& options, int64_t slots);
  void AcceptConnections(Executor* executor);

  const std::unique_ptr<PeerAuthority> authority;
  CallCounts ended;
  ChiefMethods methods;
  InFlightCalls calls;
  // Serves all methods: each method's handler decides how much of its messages is read.
  grpc::AsyncGenericService service;
  std::unique_ptr<CallAcceptor> acceptor;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<ConnectionListener> listener;
  // Acceptors for TCP connections and for connections to unix sockets. The latter never use TLS.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> tcp_connections;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> unix_connections;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<LeaderFollowerPool> threads;
  std::string address;    // for clients
  std::string listening;  // all addresses
};

absl::Status ChiefServer::Impl::Listen(const std::string& addresses) {
  std::vector<std::string> all = absl::StrSplit(addresses, ',');
  ASSIGN_OR_RETURN(listener, ConnectionListener::Listen(all));
  address = all.front();
  const auto first = std::find_if(all.begin(), all.end(), [](const auto& each) { return !IsUnixAddress(each); });
  if (first != all.end()) *first = address = absl::StrCat(first->substr(0, first->rfind(':')), ":", listener->port());
  listening = absl::StrJoin(all, ",");
  return absl::OkStatus();
}

absl::Status ChiefServer::Impl::Serve(const Options& options, int64_t slots) {
  // gRPC's own health service would add threads that wait for events of all sockets, including those of the Step
  // streams, and hand each event over to a thread of our queue. The smallest step would then take 150 us instead of 80.
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  constexpr auto kFromFd = grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD;
  tcp_connections = builder.experimental().AddExternalConnectionAcceptor(kFromFd, options.credentials.ForServer());
  unix_connections = builder.experimental().AddExternalConnectionAcceptor(kFromFd, grpc::InsecureServerCredentials());
  builder.RegisterAsyncGenericService(&service);
  SetOptions(options, slots, &builder);
  queue = builder.AddCompletionQueue();
  server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError(absl::StrCat("cannot serve on ", options.address));
  acceptor = std::make_unique<CallAcceptor>(&service, queue.get(), &calls, &ended,
                                            methods.Handlers(queue.get(), options.silence_limit, options.executor),
                                            [this](IncomingCall* call) { return AdmitCall(authority.get(), call); });
  acceptor->Accept();
  threads = std::make_unique<LeaderFollowerPool>(queue.get(), options.step_threads, options.executor);
  return absl::OkStatus();
}

void ChiefServer::Impl::AcceptConnections(Executor* executor) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  listener->Start(
      ConnectionListener::BoundFor(files.rlim_cur),
      [this](int socket, int connection) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
        parameters.listener_fd = socket;
        parameters.fd = connection;
        (IsUnixSocket(connection) ? unix_connections : tcp_connections)->HandleNewConnection(&parameters);
      },
      executor);
}

ChiefServer::Impl::~Impl() {
  methods.EndWatches();
  // Stops listening first, because gRPC would leave open a connection that arrives after its server has shut down.
  listener.reset();
  // The deadline has already passed, so streams that are still open are cancelled immediately.
  if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
  // Waits for all calls before the queue is shut down: a queue that is shut down must not get another operation, and a
  // cancelled call still has to finish.
  calls.WaitUntilNone();
  if (queue != nullptr) queue->Shutdown();
  if (queue != nullptr && threads == nullptr) LeaderFollowerPool(queue.get(), 1);  // drains it
  threads.reset();
}

absl::StatusOr<std::unique_ptr<ChiefServer>> ChiefServer::Start(const Options& options, Chief* chief) {
  KeepGrpc();
  RETURN_IF_ERROR(CheckHttp2Limits());
  PeerAuthority::Options peers = options.peers;
  peers.directory = options.credentials.directory();
  ASSIGN_OR_RETURN(auto authority, PeerAuthority::Create(peers));
  auto impl = std::make_unique<Impl>(options, chief, std::move(authority));
  RETURN_IF_ERROR(impl->Listen(options.address));
  RETURN_IF_ERROR(impl->Serve(options, SlotsOf(chief->sessions()->GetRunSpec().spec().training())));
  impl->AcceptConnections(options.executor);
  return std::unique_ptr<ChiefServer>(new ChiefServer(std::move(impl)));
}

ChiefServer::ChiefServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ChiefServer::~ChiefServer() = default;

const std::string& ChiefServer::address() const { return impl_->address; }

int ChiefServer::port() const { return impl_->listener->port(); }

const std::string& ChiefServer::listening() const { return impl_->listening; }

}  // namespace lockstep
