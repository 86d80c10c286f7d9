#ifndef LOCKSTEP_TRAIN_SESSION_STEP_GATE_H_
#define LOCKSTEP_TRAIN_SESSION_STEP_GATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/train/session/session.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep::train {

// The interface through which the code that calls hooks holds the run and saves the hooks' states. Implemented by the
// chief's session. No call blocks on the run.
class StepGate {
 public:
  virtual ~StepGate() = default;

  // Lets the chief send tokens of step s only if s <= `limit`, so that the run is held at global step `limit` + 1. No
  // tokens are sent before the first call. Lowering the limit does not recall tokens.
  virtual void AllowThrough(int64_t limit) = 0;

  // Sets the hooks' states after all steps up to global step `step`. Every later checkpoint holds these states,
  // together with the updates after `step`.
  virtual void SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) = 0;

  // Ends the run like Session::RequestStop, with the same errors. Hooks see no step after `step`. Their states at that
  // step take effect only once the end is recorded, so that no checkpoint has those states without the end.
  virtual absl::Status EndAt(int64_t step, std::vector<v1::SessionState::Hook> hooks, const std::string& reason) = 0;

  // Calls Session::Assign for a hook, but does not wait for the disk. Checkpoints record the number of such calls since
  // the newest SetState. A chief that continues from a checkpoint shows the hooks the steps since then again, and the
  // hooks must make the same calls.
  virtual absl::Status AssignByHook(absl::Span<const NamedTensor> values) = 0;

  // Calls Session::ChangeSettings for a hook. Checkpoints count these calls like those of AssignByHook.
  virtual absl::Status ChangeByHook(const SettingsChange& change) = 0;

  // Returns true if the run continues from a successful end, after which the hooks may differ from the checkpoint's.
  virtual bool MayChangeProgram() const = 0;
  // Records how the program differs from the checkpoint's, for display.
  virtual void NoteProgramChange(const std::string& what) = 0;

  // Returns the session state in the checkpoint from which the run continues. It has no hooks if there was no
  // checkpoint, or if the checkpoint has none.
  virtual v1::SessionState restored() const = 0;
  // Returns the reason if the run failed or this process stopped it. Returns OK otherwise, including after a stop from
  // outside.
  virtual absl::Status failure() const = 0;
  // Makes the next Run return the update after global step `step`.
  virtual void SeekTo(int64_t step) = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_STEP_GATE_H_
