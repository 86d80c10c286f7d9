#ifndef LOCKSTEP_TRAIN_SLIM_LOOP_SESSION_H_
#define LOCKSTEP_TRAIN_SLIM_LOOP_SESSION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/hooked_session.h"
#include "lockstep/train/session/held_session.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/slim/train_step.h"

namespace lockstep::train::slim {

// The session of a loop that sees each global step, also one that is slower than the run: the run waits for it where it
// is 64 steps behind. The first Run lets the first step through. Owns the session. Thread-safety: that of Session.
class LoopSession : public SessionDecorator {
 public:
  struct Options {
    // No step begins before the loop's next Run: it may stop, read and assign exactly.
    bool gate_loop = false;
    // The steps that are traced begin with the loop's Run, so that a trace has nothing but its step.
    absl::optional<int64_t> trace_every_n_steps;
    // Takes the summaries in place of the chief's event file; null: the chief.
    SummaryWriter summary_writer;
  };
  LoopSession(HeldSession held, Options options);

  absl::StatusOr<StepResult> Run(const TrainOp& op) override;
  absl::StatusOr<int64_t> NextStep() override;
  bool ShouldStop() override { return hooked_ != nullptr ? hooked_->ShouldStop() : SessionDecorator::ShouldStop(); }
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) override;
  absl::Status Close() override { return hooked_ != nullptr ? hooked_->Close() : SessionDecorator::Close(); }

 private:
  class TracedSteps;

  absl::Status Start();

  const HeldSession held_;
  const Options options_;
  std::unique_ptr<Hook> traced_steps_;
  // Null before the first Run.
  std::unique_ptr<HookedSession> hooked_;
};

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_LOOP_SESSION_H_
