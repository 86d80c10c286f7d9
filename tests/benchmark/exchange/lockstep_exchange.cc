#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/lockstep_session.h"

namespace lockstep {
namespace benchmark {
namespace {

// A worker that sends the same gradients in every step.
class LockstepWorker : public ExchangeWorker {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeWorker>> Connect(const ExchangeSpec& spec, const std::string& address,
                                                                 int index, absl::Duration stagger) {
    auto worker = std::make_unique<LockstepWorker>();
    GrpcClientOptions client;
    client.credentials = Credentials(spec.worker_tls_dir);
    ASSIGN_OR_RETURN(worker->session_, LockstepSession::Open(NewGrpcChiefClient(address, client), spec.model, index));
    ASSIGN_OR_RETURN(const ParameterLayout layout, ParameterLayout::Create(spec.model));
    for (size_t i = 0; i < layout.variables().size(); ++i) {
      const auto& variable = layout.variables()[i];
      if (!variable.spec.trainable()) continue;
      worker->gradients_.push_back({static_cast<int>(i), {}, static_cast<size_t>(variable.elements) * sizeof(float)});
    }
    LockstepWorker* const self = worker.get();
    worker->compute_ = [self](const StepChannel::Assignment& assignment) { return self->Send(assignment.token); };
    RETURN_IF_ERROR(worker->session_->AwaitTheOthers(worker->compute_));
    // The stagger is set only now. If it applied from the start, a slow worker might never get a slot of its own.
    worker->stagger_ = stagger;
    return std::unique_ptr<ExchangeWorker>(std::move(worker));
  }

  absl::Status Step(int n) override { return session_->Step(n, compute_); }
  absl::Status HelpOthers() override { return session_->TakePendingStep(compute_); }
  absl::StatusOr<int64_t> BytesSent() override { return session_->BytesSent(); }

 private:
  absl::Status Send(const v1::Token& token) {
    absl::SleepFor(stagger_ * token.first_slot());
    reports_.resize(static_cast<size_t>(token.slot_count()));
    for (size_t i = 0; i < reports_.size(); ++i) {
      reports_[i].set_slot(token.first_slot() + static_cast<int64_t>(i));
      reports_[i].set_loss(1.0f);
    }
    RETURN_IF_ERROR(session_->channel()->SendReports(reports_));
    for (size_t i = gradients_.size(); i-- > 0;) {
      Gradient& gradient = gradients_[i];
      float* const buffer = session_->channel()->GradientBuffer(gradient.variable);
      // All gradients and values are zero, and so are the replies that arrive in this buffer. Clearing each buffer once
      // is therefore enough, and Lockstep writes no more memory than the other systems.
      if (gradient.buffers.insert(buffer).second) std::memset(buffer, 0, gradient.bytes);
      RETURN_IF_ERROR(session_->channel()->SendGradient(gradient.variable));
    }
    return absl::OkStatus();
  }

  struct Gradient {
    int variable = 0;
    std::set<const float*> buffers;  // buffers that have been cleared
    size_t bytes = 0;
  };

  absl::Duration stagger_;
  std::unique_ptr<LockstepSession> session_;
  LockstepSession::Compute compute_;
  std::vector<Gradient> gradients_;  // one for each trainable variable
  std::vector<v1::SlotReport> reports_;
};

}  // namespace

Exchange LockstepExchange() {
  return {[](const ExchangeSpec& spec) { return ServeLockstep(EndlessRun(spec.workers), spec); },
          [](const ExchangeSpec& spec, const std::string& address, int index) {
            return LockstepWorker::Connect(spec, address, index, absl::ZeroDuration());
          }};
}

Exchange StaggeredExchange(absl::Duration stagger) {
  return {[](const ExchangeSpec& spec) {
            config::v1::RunSpec config = EndlessRun(spec.workers);
            config.mutable_optimizer()->mutable_momentum();
            return ServeLockstep(config, spec);
          },
          [stagger](const ExchangeSpec& spec, const std::string& address, int index) {
            return LockstepWorker::Connect(spec, address, index, stagger);
          }};
}

}  // namespace benchmark
}  // namespace lockstep
