#include "lockstep/tests/simulation/roles/chief_client.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/located_chief_client.h"
#include "lockstep/common/client/streamed_step_channel.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/tests/simulation/roles/step_stream.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {
namespace {

// As in GrpcClientOptions.
constexpr absl::Duration kCallTimeout = absl::Seconds(60);
constexpr absl::Duration kConnectTimeout = absl::Seconds(1);

class SimulatedChiefClient : public ChiefClient {
 public:
  SimulatedChiefClient(Process* client, std::string address, OnSilence on_silence)
      : client_(client), address_(std::move(address)), on_silence_(std::move(on_silence)) {}

  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override {
    const auto reply = CallOnce<v1::GetRunSpecReply>("GetRunSpec", v1::GetRunSpecRequest(), kConnectTimeout, &stopped_,
                                                     /*patient=*/true);
    if (absl::IsDeadlineExceeded(reply.status())) return absl::UnavailableError("it did not answer in time");
    return reply;
  }
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override {
    return CallOnce<v1::OpenSessionReply>("OpenSession", request, kCallTimeout, &stopped_, /*patient=*/false);
  }
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request) override {
    return CallOnce<v1::SetInitialValuesReply>("SetInitialValues", request, kCallTimeout, &stopped_, /*patient=*/false);
  }
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override {
    return CallOnce<v1::GetCanaryValuesReply>("GetCanaryValues", request, kCallTimeout, &stopped_, /*patient=*/false);
  }
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) override {
    if (World()->now() < client_->slow_until) return absl::UnavailableError("a heartbeat was lost");
    const Instant began = World()->now();
    return CallOnce<v1::HeartbeatReply>("Heartbeat", request, kCallTimeout, &never_, /*patient=*/false, [&] {
      return on_silence_(request, absl::Nanoseconds(World()->now() - began));
    });
  }
  absl::StatusOr<v1::RunStatus> GetStatus() override {
    return CallOnce<v1::RunStatus>("GetStatus", v1::GetStatusRequest(), kCallTimeout, &never_, /*patient=*/false);
  }
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) override {
    return CallOnce<v1::RequestEndReply>("RequestEnd", request, kCallTimeout, &never_, /*patient=*/false);
  }
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) override {
    return CallOnce<v1::AddSummaryReply>("AddSummary", request, kCallTimeout, &never_, /*patient=*/false);
  }
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) override {
    return CallOnce<v1::ReadVariablesReply>("ReadVariables", request, kCallTimeout, &never_, /*patient=*/false);
  }

  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const v1::ModelSpec& model) override {
    ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
    // A gRPC channel connects in the background. If it cannot connect, the stream ends.
    auto connection = Connected(/*patient=*/false, /*deadline=*/0, &never_);
    std::shared_ptr<Call> call;
    if (connection.ok()) call = World()->network()->StartCall(*connection, "Step");
    return std::unique_ptr<StepChannel>(
        new StreamedStepChannel(std::make_unique<SimulatedStepStream>(client_, std::move(call), connection.status()),
                                options, std::move(layout)));
  }

  void CancelConnecting() override {
    stopped_ = true;
    World()->scheduler()->WakeGroup(client_->group());
  }

 private:
  simulation::World* World() const { return client_->world(); }

  // Returns the open connection, or a new one.
  absl::StatusOr<std::shared_ptr<Connection>> Connected(bool patient, Instant deadline, const bool* cancelled) {
    if (connection_ != nullptr && connection_->open[Connection::kClient]) return connection_;
    ASSIGN_OR_RETURN(connection_, World()->network()->Connect(client_, address_, patient, deadline, cancelled));
    return connection_;
  }

  template <typename Reply>
  absl::StatusOr<Reply> CallOnce(const std::string& method, const google::protobuf::Message& request,
                                 absl::Duration timeout, const bool* cancelled, bool patient,
                                 const std::function<absl::Status()>& on_silence = nullptr) {
    if (*cancelled) return absl::CancelledError("the client was stopped");
    World()->OnPoint(Point::kCall);
    const Instant deadline = World()->now() + absl::ToInt64Nanoseconds(timeout);
    ASSIGN_OR_RETURN(const auto connection, Connected(patient, deadline, cancelled));
    const std::shared_ptr<Call> call = World()->network()->StartCall(connection, method);
    call->SendRequest(request.SerializeAsString());
    const Instant period = absl::ToInt64Nanoseconds(kSilencePeriod);
    Instant next = on_silence ? World()->now() + period : deadline;
    while (!call->status && !*cancelled && !client_->ghost()) {
      if (!World()->scheduler()->WaitFor(call.get(), std::min(next, deadline))) continue;
      absl::Status silence = absl::DeadlineExceededError("Deadline Exceeded");
      if (World()->now() < deadline) silence = on_silence();
      next = World()->now() + period;
      if (!silence.ok() && !call->status) call->Cancel(silence);
    }
    if (!call->status) call->Cancel(absl::CancelledError("CANCELLED"));
    RETURN_IF_ERROR(*call->status);
    client_->heard_at = World()->now();
    Reply reply;
    if (call->replies.empty() || !reply.ParseFromString(call->replies.front())) {
      return absl::InternalError("a reply that is no message");
    }
    return reply;
  }

  Process* const client_;
  const std::string address_;
  const OnSilence on_silence_;
  bool stopped_ = false;
  const bool never_ = false;
  std::shared_ptr<Connection> connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChiefClient>> SimulatedConnector::Connect(const MasterAddress& address) {
  return std::unique_ptr<ChiefClient>(new LocatedChiefClient(
      client_->fs(), address, [client = client_](const std::string& target, const ChiefClient::OnSilence& on_silence) {
        return std::make_unique<SimulatedChiefClient>(client, target, on_silence);
      }));
}

}  // namespace simulation
}  // namespace lockstep
