#include "lockstep/train/slim/loop_session.h"

#include <string>
#include <utility>

#include "lockstep/common/base/status_macros.h"

namespace lockstep::train::slim {

class LoopSession::TracedSteps : public Hook {
 public:
  explicit TracedSteps(int64_t every_n_steps) : every_n_steps_(every_n_steps) {}

  std::string name() const override { return "slim.TracedSteps"; }
  bool GatesAt(int64_t step) const override { return step % every_n_steps_ == 0; }

 private:
  const int64_t every_n_steps_;
};

LoopSession::LoopSession(HeldSession held, Options options)
    : SessionDecorator(held.session.get()), held_(std::move(held)), options_(std::move(options)) {}

absl::Status LoopSession::Start() {
  if (hooked_ != nullptr) return absl::OkStatus();
  HookedSession::Options options;
  options.gate = held_.gate;
  options.gate_loop = options_.gate_loop;
  options.recover = true;
  if (options_.trace_every_n_steps) {
    traced_steps_ = std::make_unique<TracedSteps>(*options_.trace_every_n_steps);
    options.hooks.push_back(traced_steps_.get());
  }
  ASSIGN_OR_RETURN(const int64_t opened, held_.session->GlobalStep());
  ASSIGN_OR_RETURN(hooked_, HookedSession::Open(held_.session.get(), std::move(options)));
  // Steps that an earlier life has taken and not seen are none of this loop's.
  while (held_.gate != nullptr) {
    ASSIGN_OR_RETURN(const int64_t next, hooked_->NextStep());
    if (next >= opened) break;
    RETURN_IF_ERROR(hooked_->Run(TrainOp()).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<StepResult> LoopSession::Run(const TrainOp& op) {
  RETURN_IF_ERROR(Start());
  return hooked_->Run(op);
}

absl::StatusOr<int64_t> LoopSession::NextStep() {
  RETURN_IF_ERROR(Start());
  return hooked_->NextStep();
}

absl::Status LoopSession::AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) {
  if (!options_.summary_writer) return SessionDecorator::AddSummary(summary, global_step);
  if (!global_step) {
    ASSIGN_OR_RETURN(global_step, GlobalStep());
  }
  return options_.summary_writer(summary, *global_step);
}

}  // namespace lockstep::train::slim
