#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/periodic_task.h"
#include "common/base/status_macros.h"
#include "common/tensor/parameter_layout.h"
#include "common/transport/grpc_chief_client.h"
#include "server/chief/chief.h"
#include "server/rpc/chief_server.h"
#include "tests/benchmark/exchange.h"

namespace lockstep {
namespace benchmark {
namespace {

class LockstepServer : public ExchangeServer {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeServer>> Start(const ExchangeSpec& spec) {
    auto server = std::make_unique<LockstepServer>();
    Chief::Options options;
    options.clock = Clock::Real();
    options.config.mutable_optimizer()->mutable_sgd();
    options.config.mutable_optimizer()->mutable_learning_rate()->set_initial(0.01f);
    options.config.mutable_training()->set_steps(int64_t{1} << 40);
    options.config.mutable_training()->set_replicas_to_aggregate(spec.workers);
    options.config.mutable_cluster()->set_lease_seconds(3600);
    ASSIGN_OR_RETURN(server->chief_, Chief::Create(std::move(options)));
    ChiefServer::Options rpc;
    rpc.step_threads = spec.step_threads;
    if (spec.unix_socket) rpc.address = absl::StrCat("unix:", spec.directory, "/chief");
    ASSIGN_OR_RETURN(server->server_, ChiefServer::Start(rpc, server->chief_.get()));
    return std::unique_ptr<ExchangeServer>(std::move(server));
  }

  std::string address() const override { return server_->address(); }

 private:
  std::unique_ptr<Chief> chief_;
  std::unique_ptr<ChiefServer> server_;
};

class LockstepWorker : public ExchangeWorker {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeWorker>> Connect(const ExchangeSpec& spec, const std::string& address,
                                                                 int index) {
    auto worker = std::make_unique<LockstepWorker>();
    worker->client_ = NewGrpcChiefClient(address);
    OpenSessionRequest request;
    request.set_worker(absl::StrCat("worker-", index));
    request.set_incarnation(static_cast<uint64_t>(index) + 1);
    *request.mutable_model() = spec.model;
    auto session = worker->client_->OpenSession(request);
    while (absl::IsUnavailable(session.status())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      session = worker->client_->OpenSession(request);
    }
    RETURN_IF_ERROR(session.status());
    ChiefClient::StepOptions options;
    options.session_id = session->session_id();
    options.epoch = session->epoch();
    ASSIGN_OR_RETURN(worker->channel_, worker->client_->OpenStepChannel(options, spec.model));
    ASSIGN_OR_RETURN(const ParameterLayout layout, ParameterLayout::Create(spec.model));
    for (const auto& variable : layout.variables()) {
      std::memset(worker->channel_->GradientBuffer(static_cast<int>(worker->bytes_.size())), 0,
                  static_cast<size_t>(variable.elements) * sizeof(float));
      worker->bytes_.push_back(static_cast<size_t>(variable.elements) * sizeof(float));
    }
    worker->heartbeat_.set_session_id(session->session_id());
    worker->heartbeat_.set_epoch(session->epoch());
    PeriodicTask::Options periodic;
    periodic.clock = Clock::Real();
    periodic.period = absl::Seconds(1);
    LockstepWorker* const self = worker.get();
    worker->heartbeats_ = std::make_unique<PeriodicTask>(
        periodic, [self] { self->client_->Heartbeat(self->heartbeat_).status().IgnoreError(); });
    RETURN_IF_ERROR(worker->AwaitTheOthers());
    return std::unique_ptr<ExchangeWorker>(std::move(worker));
  }

  absl::Status Step(int n) override {
    target_ += n;
    while (assignment_.token.step() < target_) RETURN_IF_ERROR(ComputeBlock());
    return absl::OkStatus();
  }

 private:
  // The first worker gets tokens for several slots and steps alone until there is one for each.
  absl::Status AwaitTheOthers() {
    ASSIGN_OR_RETURN(assignment_, channel_->AwaitToken());
    while (assignment_.token.slot_count() > 1) RETURN_IF_ERROR(ComputeBlock());
    target_ = assignment_.token.step();
    return absl::OkStatus();
  }

  absl::Status ComputeBlock() {
    reports_.resize(static_cast<size_t>(assignment_.token.slot_count()));
    for (size_t i = 0; i < reports_.size(); ++i) {
      reports_[i].set_slot(assignment_.token.first_slot() + static_cast<int64_t>(i));
      reports_[i].set_loss(1.0f);
    }
    RETURN_IF_ERROR(channel_->SendReports(reports_));
    for (int i = static_cast<int>(bytes_.size()) - 1; i >= 0; --i) RETURN_IF_ERROR(channel_->SendGradient(i));
    ASSIGN_OR_RETURN(assignment_, channel_->AwaitToken());
    return absl::OkStatus();
  }

  std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<StepChannel> channel_;
  StepChannel::Assignment assignment_;
  int64_t target_ = 0;
  std::vector<size_t> bytes_;
  std::vector<SlotReport> reports_;
  HeartbeatRequest heartbeat_;
  // As every worker: they also keep the connection alive between the turns.
  std::unique_ptr<PeriodicTask> heartbeats_;
};

}  // namespace

Exchange LockstepExchange() { return {LockstepServer::Start, LockstepWorker::Connect}; }

}  // namespace benchmark
}  // namespace lockstep
