#include "lockstep/common/transport/grpc_chief_client.h"

#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/streamed_step_channel.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/tls_diagnosis.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/common/transport/connection/channel.h"
#include "lockstep/common/transport/connection/chief_connection.h"
#include "lockstep/common/transport/connection/status_conversion.h"
#include "lockstep/common/transport/grpc_step_stream.h"
#include "lockstep/common/transport/ring_step_stream.h"
#include "lockstep/v1/chief.grpc.pb.h"
#include "proto/grpc/health.grpc.pb.h"

namespace lockstep {
namespace {

// Converts the status of a unary call. PermissionDenied gets the exit code for a bad configuration, because a chief
// that refuses the caller's role would do so again.
absl::Status CallStatus(const grpc::Status& status) {
  absl::Status converted = FromGrpc(status);
  return absl::IsPermissionDenied(converted) ? WithExitCode(std::move(converted), kExitBadConfiguration) : converted;
}

// The calls in progress that CancelConnecting cancels. Thread-safe.
class ConnectingCalls {
 public:
  // Returns Cancelled after Cancel.
  absl::Status Add(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("the client was stopped");
    contexts_.insert(context);
    return absl::OkStatus();
  }
  void Remove(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    contexts_.erase(context);
  }
  bool cancelled() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return cancelled_;
  }
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    // Hold the lock, because a context must outlive its cancellation. TryCancel does not call back into our code.
    for (grpc::ClientContext* const context : contexts_) context->TryCancel();
  }

 private:
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
};

class GrpcChiefClient : public ChiefClient {
 public:
  GrpcChiefClient(const std::string& target, const GrpcClientOptions& options)
      : options_(options), connection_(target, ConnectionOptions(options)) {}

  // A worker's first call, which it repeats after the chief has gone away.
  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override {
    const ChiefConnection::Attempt attempt = connection_.Begin();
    grpc::ClientContext context;
    auto reply = Connect<v1::GetRunSpecReply>(*attempt.link, &v1::ChiefService::Stub::GetRunSpec,
                                              v1::GetRunSpecRequest(), &context, attempt.limit);
    RETURN_IF_ERROR(connection_.End(attempt, reply.status()));
    return reply;
  }
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override {
    grpc::ClientContext context;
    return InSession(Connect<v1::OpenSessionReply>(*connection_.link(), &v1::ChiefService::Stub::OpenSession, request,
                                                   &context, options_.call_timeout));
  }
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request) override {
    grpc::ClientContext context;
    return InSession(Connect<v1::SetInitialValuesReply>(*connection_.link(), &v1::ChiefService::Stub::SetInitialValues,
                                                        request, &context, options_.call_timeout));
  }
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override {
    grpc::ClientContext context;
    return InSession(Connect<v1::GetCanaryValuesReply>(*connection_.link(), &v1::ChiefService::Stub::GetCanaryValues,
                                                       request, &context, options_.call_timeout));
  }
  // Uses a queue of its own, so that it can look at the clock before the reply.
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) override {
    const std::shared_ptr<const ChiefConnection::Link> link = connection_.link();
    const absl::Time began = absl::Now();
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(began + options_.call_timeout));
    grpc::CompletionQueue queue;
    const auto call = link->stub->AsyncHeartbeat(&context, request, &queue);
    v1::HeartbeatReply reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    const absl::Status silence = AwaitReply(&queue, &context, [&] {
      return options_.on_silence ? options_.on_silence(request, absl::Now() - began) : absl::OkStatus();
    });
    RETURN_IF_ERROR(silence);
    return InSession(Result(status, std::move(reply)));
  }
  absl::StatusOr<v1::RunStatus> GetStatus() override {
    const ChiefConnection::Attempt attempt = connection_.Begin();
    grpc::ClientContext context;
    auto status = Call<v1::RunStatus>(*attempt.link, &v1::ChiefService::Stub::GetStatus, v1::GetStatusRequest(),
                                      &context, attempt.fresh ? attempt.limit : options_.call_timeout);
    RETURN_IF_ERROR(connection_.End(attempt, status.status()));
    return status;
  }
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) override {
    grpc::ClientContext context;
    return InSession(Call<v1::RequestEndReply>(*connection_.link(), &v1::ChiefService::Stub::RequestEnd, request,
                                               &context, options_.call_timeout));
  }
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) override {
    grpc::ClientContext context;
    return InSession(Call<v1::AddSummaryReply>(*connection_.link(), &v1::ChiefService::Stub::AddSummary, request,
                                               &context, options_.call_timeout));
  }
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) override {
    grpc::ClientContext context;
    if (request.read_id() != 0) {
      return Call<v1::ReadVariablesReply>(*connection_.link(), &v1::ChiefService::Stub::ReadVariables, request,
                                          &context, options_.call_timeout);
    }
    const ChiefConnection::Attempt attempt = connection_.Begin();
    auto reply = Call<v1::ReadVariablesReply>(*attempt.link, &v1::ChiefService::Stub::ReadVariables, request, &context,
                                              options_.call_timeout);
    RETURN_IF_ERROR(connection_.End(attempt, reply.status()));
    return reply;
  }

  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const v1::ModelSpec& model) override {
    ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
    auto stream = std::make_unique<GrpcStepStream>(connection_.link()->channel, options_.leave_limit);
    return std::unique_ptr<StepChannel>(new StreamedStepChannel(
        std::make_unique<RingStepStream>(std::move(stream), options_.leave_limit), options, std::move(layout)));
  }

  void CancelConnecting() override { connecting_.Cancel(); }

 private:
  template <typename Reply, typename Request>
  using Method = grpc::Status (v1::ChiefService::Stub::*)(grpc::ClientContext*, const Request&, Reply*);

  // Returns the reply to a call that follows GetRunSpec. If the chief no longer accepts the certificate of the
  // connection, the next GetRunSpec makes a new connection and finds out whether a renewed certificate helps.
  template <typename Reply>
  static absl::StatusOr<Reply> InSession(absl::StatusOr<Reply> reply) {
    if (absl::IsUnauthenticated(reply.status())) return absl::UnavailableError(reply.status().message());
    return reply;
  }

  static ChiefConnection::Options ConnectionOptions(const GrpcClientOptions& options) {
    ChiefConnection::Options connection;
    connection.credentials = options.credentials;
    connection.first_limit = options.connect_timeout;
    return connection;
  }

  template <typename Reply, typename Request>
  absl::StatusOr<Reply> Call(const ChiefConnection::Link& link, Method<Reply, Request> method, const Request& request,
                             grpc::ClientContext* context, absl::Duration timeout) {
    context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
    Reply reply;
    const grpc::Status status = (link.stub.get()->*method)(context, request, &reply);
    return Result(status, std::move(reply));
  }

  // Returns the result of a unary call that has ended.
  template <typename Reply>
  absl::StatusOr<Reply> Result(const grpc::Status& ended, Reply reply) {
    const absl::Status status = CallStatus(ended);
    // A server cancels its calls when it shuts down.
    if (absl::IsCancelled(status) && !connecting_.cancelled()) {
      return absl::UnavailableError("the chief shut down during the call");
    }
    RETURN_IF_ERROR(status);
    return reply;
  }

  // Waits until the only call of `queue` has ended. Calls `on_silence` meanwhile; an error ends the call, and is
  // returned.
  absl::Status AwaitReply(grpc::CompletionQueue* queue, grpc::ClientContext* context,
                          const std::function<absl::Status()>& on_silence) {
    absl::Status silence;
    void* tag = nullptr;
    bool ok = false;
    while (queue->AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + options_.silence_period)) ==
           grpc::CompletionQueue::TIMEOUT) {
      if (silence.ok()) silence = on_silence();
      if (!silence.ok()) context->TryCancel();
    }
    queue->Shutdown();
    while (queue->Next(&tag, &ok)) {
    }
    return silence;
  }

  // Makes a call that CancelConnecting can cancel.
  template <typename Reply, typename Request>
  absl::StatusOr<Reply> Connect(const ChiefConnection::Link& link, Method<Reply, Request> method,
                                const Request& request, grpc::ClientContext* context, absl::Duration timeout) {
    RETURN_IF_ERROR(connecting_.Add(context));
    auto reply = Call<Reply>(link, method, request, context, timeout);
    connecting_.Remove(context);
    return reply;
  }

  const GrpcClientOptions options_;
  ChiefConnection connection_;
  ConnectingCalls connecting_;
};

}  // namespace

std::unique_ptr<ChiefClient> NewGrpcChiefClient(const std::string& target, const GrpcClientOptions& options) {
  return std::make_unique<GrpcChiefClient>(target, options);
}

absl::Status CheckHealth(const std::string& target, absl::Duration timeout, const Credentials& credentials) {
  const auto stub = grpc::health::v1::Health::NewStub(NewChannel(target, credentials, timeout / 2));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
  grpc::health::v1::HealthCheckResponse response;
  const absl::Status checked = FromGrpc(stub->Check(&context, grpc::health::v1::HealthCheckRequest(), &response));
  if (absl::IsUnavailable(checked) && !IsUnixAddress(target)) {
    RETURN_IF_ERROR(DiagnoseTls(target, credentials.directory(), FileSystem::Real(), timeout));
  }
  RETURN_IF_ERROR(checked);
  if (response.status() == grpc::health::v1::HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(target, " says ", grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status())));
}

}  // namespace lockstep
