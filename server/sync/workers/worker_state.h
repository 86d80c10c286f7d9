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

// The part of a session's id that people are shown: the whole id is a secret that lets its holder act for the worker.
inline uint64_t ShortSessionId(uint64_t session) { return session & 0xffff; }

// The batch at a position of an input stream, both counted from 0. Each stream has an order of its own (ExampleOrder).
struct BatchAddress {
  int64_t stream = 0;
  int64_t position = 0;
};

// Permission to compute a block of slots of a step, or one batch.
struct StepToken {
  int64_t step = 0;
  SlotBlock block;
  // The contribution is to bring digests; no part of what the token names.
  bool digest = false;
  // As v1.Token says.
  bool extra = false;
  // The batch, if it is not that of the block's slots at `step`: the block then has one slot.
  absl::optional<BatchAddress> batch;
  // The step whose values the worker computes with; -1 until the token is sent.
  int64_t values_step = -1;

  // "slots [4,6) of step 17" or "batch 9 of stream 2 for step 17"
  std::string ToString() const;
  friend bool operator==(const StepToken& a, const StepToken& b) { return a.step == b.step && a.block == b.block; }
};

// Where one worker stands in the protocol of the step, as its chief sees it over one stream. What the worker does wrong
// is an error; what the chief may not do returns false. Neither changes anything. Pure; not thread-safe.
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
//   ¹ when it is for the token, else an error   ² and the worker is silent until it is heard of
class WorkerState {
 public:
  enum class Phase {
    kConnected,  // has asked for nothing yet
    kWaiting,    // for a token
    kAssigned,   // a token waits to be sent
    kComputing,  // has the token, as it was sent
    kPushing,    // has sent a part of its contribution
    kLeft,       // said goodbye, or heard that the run is over
  };
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  WorkerState(std::string name, absl::Time now) : name_(std::move(name)), heard_(now) {}

  // A sign of life.
  void OnHeard(absl::Time now);
  // With its first frame the worker says from which global step on it takes part.
  void SetStart(int64_t step) { not_before_step_ = step; }
  // Asks for a token, perhaps in place of the contribution to the one that it has.
  absl::Status OnAsk();
  // A part of the contribution to `token`. Those of one contribution name the same token: ContributionChecker.
  absl::Status OnContribution(const StepToken& token);
  // The contribution waits for others, and waits no longer. Such time does not count as the worker's: the token might
  // have been given so much later.
  void OnWait(absl::Time now) { waits_since_ = now; }
  void OnWaited(absl::Time now) { token_time_ += now - waits_since_; }
  // Some of it was new to the step.
  void MarkNew() { any_new_ = true; }
  // The contribution is whole; the worker waits for a token. It will be sent `result`.
  absl::Status OnContributed(v1::ContributionResult result);
  void OnLeave() { phase_ = Phase::kLeft; }

  bool OnAssigned(const StepToken& token, absl::Time now);
  // The token was sent with the values of this step.
  bool OnTokenSent(int64_t values_step);
  bool OnVoided();
  bool OnLeaseEnded();
  bool OnFinishSent();
  // The worker is sent the result of its last contribution.
  void OnResultSent() { result_ = v1::CONTRIBUTION_NONE; }

  const std::string& name() const { return name_; }
  Phase phase() const { return phase_; }
  // At the chief: it has no token, or one that was not sent yet.
  bool awaits_token() const { return phase_ == Phase::kWaiting || phase_ == Phase::kAssigned; }
  bool silent() const { return silent_; }
  absl::Time heard() const { return heard_; }
  // kNever before the first frame.
  int64_t not_before_step() const { return not_before_step_; }
  // The newest one, whatever has become of it, and when it was given.
  const absl::optional<StepToken>& last_token() const { return token_; }
  absl::Time token_time() const { return token_time_; }
  // The step of the contribution that began last; -1 before the first.
  int64_t contributed_step() const { return contributed_step_; }
  bool any_new() const { return any_new_; }
  v1::ContributionResult result() const { return result_; }

 private:
  // Phase `to`, when it is `from` now.
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
