#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_WORKER_STATE_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_WORKER_STATE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// Returns the part of a session's id that may be shown. The whole id is a secret that lets its holder act for the
// worker.
inline uint64_t ShortSessionId(uint64_t session) { return session & 0xffff; }

// The batch at a position of an input stream, both counted from 0. Each stream has its own order (ExampleOrder).
struct BatchAddress {
  int64_t stream = 0;
  int64_t position = 0;
};

// Permission to compute a block of slots of a step, or one batch.
struct StepToken {
  int64_t step = 0;
  SlotBlock block;
  // True if the contribution must contain digests. Does not affect which slots or batch the token names.
  bool digest = false;
  // See v1.Token.
  bool extra = false;
  // The batch to compute, unless it is that of the block's slots at `step`. If set, the block has one slot.
  absl::optional<BatchAddress> batch;
  // The step of the values that the worker computes with; -1 until the token is sent.
  int64_t values_step = -1;

  // Returns "slots [4,6) of step 17" or "batch 9 of stream 2 for step 17".
  std::string ToString() const;
  friend bool operator==(const StepToken& a, const StepToken& b) { return a.step == b.step && a.block == b.block; }
};

// The state of one worker in the protocol of the step, as its chief sees it over one stream. If the worker makes a
// mistake, the result is an error; if the chief makes a call that it may not make, the result is false. In both cases,
// nothing changes. Pure; not thread-safe.
//
//   event \ phase    kConnected kWaiting  kAssigned  kComputing kPushing  kLeft
//   OnAsk            kWaiting   error     error      kWaiting   error     error
//   OnContribution   error      error     error      kPushing¹  kPushing  error
//   OnContributed    error      error     error      error      kWaiting  error
//   OnLeave          kLeft      kLeft     kLeft      kLeft      kLeft     kLeft
//   OnAssigned       false      kAssigned false      false      false     false
//   OnTokenSent      false      false     kComputing false      false     false
//   OnVoided         false      false     kWaiting   false      false     false
//   OnLeaseEnded²    false      false     kWaiting   kComputing kPushing  false
//   OnFinishSent     false      kLeft     kLeft      false      false     false
//
//   ¹ if it is for the token, otherwise an error   ² the worker is then silent until it is heard from
class WorkerState {
 public:
  enum class Phase {
    kConnected,  // has asked for nothing yet
    kWaiting,    // for a token
    kAssigned,   // a token waits to be sent
    kComputing,  // has the token as sent
    kPushing,    // has sent a part of its contribution
    kLeft,       // has left, or was notified that the run is over
  };
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  WorkerState(std::string name, absl::Time now) : name_(std::move(name)), heard_(now) {}

  // Records a sign of life.
  void OnHeard(absl::Time now);
  // Sets the global step at which the worker starts to take part, which its first frame names.
  void SetStart(int64_t step) { not_before_step_ = step; }
  // Handles a request for a token, possibly instead of the contribution to the current one.
  absl::Status OnAsk();
  // Handles a part of the contribution to `token`. The parts of one contribution name the same token
  // (ContributionChecker).
  absl::Status OnContribution(const StepToken& token);
  // OnWait and OnWaited begin and end a wait of the contribution for others. The worker's time excludes the wait, as if
  // the token had been issued that much later.
  void OnWait(absl::Time now) { waits_since_ = now; }
  void OnWaited(absl::Time now) { token_time_ += now - waits_since_; }
  // Records that some of the contribution was new to the step.
  void MarkNew() { any_new_ = true; }
  // Ends the contribution, which is complete. The worker then waits for a token, and will be sent `result`.
  absl::Status OnContributed(v1::ContributionResult result);
  void OnLeave() { phase_ = Phase::kLeft; }

  bool OnAssigned(const StepToken& token, absl::Time now);
  // Records that the token was sent with the values of this step.
  bool OnTokenSent(int64_t values_step);
  bool OnVoided();
  bool OnLeaseEnded();
  bool OnFinishSent();
  // Records that the worker is sent the result of its last contribution.
  void OnResultSent() { result_ = v1::CONTRIBUTION_NONE; }

  const std::string& name() const { return name_; }
  Phase phase() const { return phase_; }
  // Returns true if the worker has no token, or one that has not been sent yet.
  bool awaits_token() const { return phase_ == Phase::kWaiting || phase_ == Phase::kAssigned; }
  bool silent() const { return silent_; }
  absl::Time heard() const { return heard_; }
  // Returns the global step set by SetStart, or kNever before the first frame.
  int64_t not_before_step() const { return not_before_step_; }
  // Return the newest token, whatever its state, and the time when it was issued.
  const absl::optional<StepToken>& last_token() const { return token_; }
  absl::Time token_time() const { return token_time_; }
  // Returns the step of the latest contribution that began; -1 before the first one.
  int64_t contributed_step() const { return contributed_step_; }
  bool any_new() const { return any_new_; }
  v1::ContributionResult result() const { return result_; }

 private:
  // Changes the phase to `to` if it is currently `from`.
  bool Move(Phase from, Phase to);
  absl::Status Refuse(absl::string_view what) const;

  const std::string name_;
  Phase phase_ = Phase::kConnected;
  bool silent_ = false;
  absl::Time heard_;
  int64_t not_before_step_ = kNever;
  absl::optional<StepToken> token_;
  absl::Time token_time_;
  absl::Time waits_since_;
  int64_t contributed_step_ = -1;
  bool any_new_ = false;
  v1::ContributionResult result_ = v1::CONTRIBUTION_NONE;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_WORKER_STATE_H_
