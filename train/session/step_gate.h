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

// How whoever calls hooks holds the run and keeps what they have come to. The chief's session implements it. No call
// blocks on the run.
class StepGate {
 public:
  virtual ~StepGate() = default;

  // Tokens of step s are given only if s <= `limit`: the run is held at global step `limit` + 1. No tokens are given
  // before the first call. A smaller limit than before takes nothing back.
  virtual void AllowThrough(int64_t limit) = 0;

  // The hooks have seen all up to global step `step`, and this is what they have come to. It is in every checkpoint
  // from now on, with the updates after `step`.
  virtual void SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) = 0;

  // Ends the run as Session::RequestStop does, with the same errors. Hooks see no step after `step`. Their state there
  // counts once the end is recorded, so that no checkpoint has that state without the end.
  virtual absl::Status EndAt(int64_t step, std::vector<v1::SessionState::Hook> hooks, const std::string& reason) = 0;

  // Session::Assign, called by a hook, but without waiting for the disk. Checkpoints hold how often that was since the
  // newest SetState: the life that continues from one shows the hooks those steps again, and they make the same calls.
  virtual absl::Status AssignByHook(absl::Span<const NamedTensor> values) = 0;

  // Session::ChangeSettings, called by a hook. Counted in the same way.
  virtual absl::Status ChangeByHook(const SettingsChange& change) = 0;

  // Returns true if the run continues from a good end, after which hooks may differ from those of the checkpoint.
  virtual bool MayChangeProgram() const = 0;
  // Records such a difference, for display.
  virtual void NoteProgramChange(const std::string& what) = 0;

  // What the checkpoint held from which the run continues; no hooks when there was none, or nothing in it.
  virtual v1::SessionState restored() const = 0;
  // Why the run has failed, or was stopped by this process; OK otherwise, and after a stop from outside.
  virtual absl::Status failure() const = 0;
  // The next Run returns the update after global step `step`.
  virtual void SeekTo(int64_t step) = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_STEP_GATE_H_
