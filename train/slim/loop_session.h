#ifndef LOCKSTEP_TRAIN_SLIM_LOOP_SESSION_H_
#define LOCKSTEP_TRAIN_SLIM_LOOP_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/hooked_session.h"
#include "lockstep/train/session/held_session.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/slim/train_step.h"

namespace lockstep::train::slim {

// A hook that gates the steps that begin at multiples of a period, so that a trace contains only its own step.
class TracedSteps : public Hook {
 public:
  explicit TracedSteps(int64_t every_n_steps) : every_n_steps_(every_n_steps) {}

  std::string name() const override { return "slim.TracedSteps"; }
  bool GatesAt(int64_t step) const override { return step % every_n_steps_ == 0; }

 private:
  const int64_t every_n_steps_;
};

// A hook that keeps the state of a step function in checkpoints.
class StepFunctionState : public Hook {
 public:
  // `kwargs` must outlive this object.
  explicit StepFunctionState(TrainStepKwargs* kwargs) : kwargs_(*kwargs) {}

  std::string name() const override { return "slim.StepFunction"; }
  bool GatesAt(int64_t) const override { return false; }
  std::string State() const override;
  absl::Status SetState(absl::string_view text) override;

 private:
  TrainStepKwargs& kwargs_;
};

// The session of a loop that receives each global step, in order. If the loop is 64 steps behind the run, the run
// waits. Life cycle: Start (or the first Run or NextStep), which allows the first steps to begin; Close. Owns the
// session. Thread-safety: same as Session.
class LoopSession : public SessionDecorator {
 public:
  struct Options {
    // If true, no step begins before the loop's next Run, so that the loop can stop, read and assign at exact steps. On
    // a chief that continues from a checkpoint, Run returns again each step for which KeepStates was not called.
    bool gate_loop = false;
    // See HookedSession::Options.
    std::vector<Hook*> hooks;
    std::vector<std::string> initial_states;
  };
  LoopSession(HeldSession held, Options options)
      : SessionDecorator(held.session.get()), held_(std::move(held)), options_(std::move(options)) {}

  // Restores the hooks' states and calls their AfterCreateSession, once.
  absl::Status Start();
  // Returns OutOfRange after a hook has requested a stop.
  absl::StatusOr<StepResult> Run(const TrainOp& op) override;
  absl::StatusOr<int64_t> NextStep() override;
  bool ShouldStop() override { return hooked_ != nullptr ? hooked_->ShouldStop() : SessionDecorator::ShouldStop(); }
  absl::Status Assign(absl::Span<const NamedTensor> values) override {
    return hooked_ != nullptr ? hooked_->Assign(values) : SessionDecorator::Assign(values);
  }
  absl::Status ChangeSettings(const SettingsChange& change) override {
    return hooked_ != nullptr ? hooked_->ChangeSettings(change) : SessionDecorator::ChangeSettings(change);
  }
  absl::Status Close() override { return hooked_ != nullptr ? hooked_->Close() : SessionDecorator::Close(); }

  // Called when the loop has processed the steps that Run has returned. Calls HookedSession::KeepStates.
  absl::Status KeepStates() { return hooked_ != nullptr ? hooked_->KeepStates() : absl::OkStatus(); }
  bool stop_requested() const { return hooked_ != nullptr && hooked_->stop_requested(); }

 private:
  const HeldSession held_;
  const Options options_;
  // Null before Start.
  std::unique_ptr<HookedSession> hooked_;
};

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_LOOP_SESSION_H_
