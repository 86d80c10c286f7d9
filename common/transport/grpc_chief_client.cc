#include "common/transport/grpc_chief_client.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/parameter_layout.h"
#include "common/transport/channel.h"
#include "common/transport/grpc_step_channel.h"
#include "common/transport/status_conversion.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "proto/chief.grpc.pb.h"
#include "proto/health.grpc.pb.h"

namespace lockstep {
namespace {

class GrpcChiefClient : public ChiefClient {
 public:
  GrpcChiefClient(std::shared_ptr<grpc::Channel> channel, const GrpcClientOptions& options)
      : options_(options), channel_(std::move(channel)), stub_(ChiefService::NewStub(channel_)) {}

  // A worker's first call, and its first after the chief went away. It waits for the connection: a call that fails at
  // once leaves nobody to poll the attempt to connect, which gRPC then notices only every five seconds.
  absl::StatusOr<GetRunReply> GetRun() override {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(options_.connect_timeout));
    GetRunReply reply;
    const absl::Status status = FromGrpc(stub_->GetRun(&context, GetRunRequest(), &reply));
    if (absl::IsDeadlineExceeded(status)) return absl::UnavailableError("nobody answers there");
    RETURN_IF_ERROR(status);
    return reply;
  }
  absl::StatusOr<OpenSessionReply> OpenSession(const OpenSessionRequest& request) override {
    return Call<OpenSessionReply>(&ChiefService::Stub::OpenSession, request);
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request) override {
    return Call<HeartbeatReply>(&ChiefService::Stub::Heartbeat, request);
  }
  absl::StatusOr<RunStatus> GetStatus() override {
    return Call<RunStatus>(&ChiefService::Stub::GetStatus, GetStatusRequest());
  }

  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const ModelSpec& model) override {
    ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
    return std::unique_ptr<StepChannel>(
        new GrpcStepChannel(channel_, options, std::move(layout), options_.leave_limit));
  }

 private:
  template <typename Reply, typename Request>
  absl::StatusOr<Reply> Call(grpc::Status (ChiefService::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                             const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(options_.call_timeout));
    Reply reply;
    RETURN_IF_ERROR(FromGrpc((stub_.get()->*method)(&context, request, &reply)));
    return reply;
  }

  const GrpcClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<ChiefService::Stub> stub_;
};

}  // namespace

std::unique_ptr<ChiefClient> NewGrpcChiefClient(const std::string& target, const GrpcClientOptions& options) {
  return std::make_unique<GrpcChiefClient>(NewChannel(target), options);
}

absl::Status CheckHealth(const std::string& target, absl::Duration timeout) {
  const auto stub = grpc::health::v1::Health::NewStub(NewChannel(target));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
  grpc::health::v1::HealthCheckResponse response;
  RETURN_IF_ERROR(FromGrpc(stub->Check(&context, grpc::health::v1::HealthCheckRequest(), &response)));
  if (response.status() == grpc::health::v1::HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(target, " says ", grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status())));
}

}  // namespace lockstep
