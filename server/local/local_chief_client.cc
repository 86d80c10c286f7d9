#include "lockstep/server/local/local_chief_client.h"

#include <atomic>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/streamed_step_channel.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/local/local_step_stream.h"

namespace lockstep {
namespace {

class LocalChiefClient : public ChiefClient {
 public:
  explicit LocalChiefClient(Chief* chief) : chief_(chief) {}

  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override {
    RETURN_IF_ERROR(CheckConnecting());
    return chief_->sessions()->GetRunSpec();
  }
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override {
    RETURN_IF_ERROR(CheckConnecting());
    return chief_->sessions()->OpenSession(request);
  }
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override {
    RETURN_IF_ERROR(CheckConnecting());
    return chief_->sessions()->GetCanaryValues(request);
  }
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) override {
    return chief_->sessions()->Heartbeat(request);
  }
  absl::StatusOr<v1::RunStatus> GetStatus() override { return chief_->GetStatus(); }
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) override {
    return chief_->sessions()->RequestFinish(request);
  }
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) override {
    return chief_->sessions()->AddSummary(request);
  }
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) override {
    return chief_->ReadVariables(request);
  }

  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const v1::ModelSpec& model) override {
    ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
    ASSIGN_OR_RETURN(std::unique_ptr<StepStream> stream, LocalStepStream::Open(chief_, options));
    // Nothing is sent over a network, so nothing is encoded: values with 16-bit rounding stay float32.
    StepOptions local = options;
    local.compression.gradients = local.compression.values = v1::DT_FLOAT;
    local.chief_memory.reset();
    return std::unique_ptr<StepChannel>(new StreamedStepChannel(std::move(stream), local, std::move(layout)));
  }

  void CancelConnecting() override { stopped_ = true; }

 private:
  absl::Status CheckConnecting() const {
    return stopped_.load() ? absl::CancelledError("the client was stopped") : absl::OkStatus();
  }

  Chief* const chief_;
  std::atomic<bool> stopped_{false};
};

}  // namespace

std::unique_ptr<ChiefClient> NewLocalChiefClient(Chief* chief) { return std::make_unique<LocalChiefClient>(chief); }

}  // namespace lockstep
