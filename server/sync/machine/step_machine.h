#ifndef LOCKSTEP_SERVER_SYNC_MACHINE_STEP_MACHINE_H_
#define LOCKSTEP_SERVER_SYNC_MACHINE_STEP_MACHINE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/server/sync/machine/run_event.h"
#include "lockstep/server/sync/machine/staging_places.h"
#include "lockstep/server/sync/machine/sum_admission.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/workers/flat_set.h"
#include "lockstep/server/sync/workers/token_leases.h"
#include "lockstep/server/sync/workers/worker_state.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/status.pb.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// The effects of one event. The owner (SyncReplicas) carries them out in this order:
//
//   while it holds the machine's lock, and so before the machine's next event
//     1. contributed: count the contribution
//     2. snapshot: take it, before the next step begins
//     3. begin: make the sums of the next step
//     4. give_up, complete: discard the sums
//     5. unstage, close: drop what these workers have staged, and forget the closed streams; `resume` may still name
//        them, but `wake` does not
//     6. commit: apply the sums and call OnCommitted. Its effects follow in the same order, except that `begin` comes
//        last, so that streams that keep too many old values end first and release their memory
//   without the lock, because each of these calls other code
//     7. events to RunEvents, then close, wake and resume to the streams, in this order
//     8. the snapshot, the commit, complete and failure to RunEvents, in this order
//     9. status to the caller of OnFrame, which ends the stream
struct StepEffects {
  struct Close {
    uint64_t session = 0;
    absl::Status why;
    bool at_once = false;  // StepListener::OnClosed
  };
  struct Contributed {
    StepToken token;
    v1::ContributionResult result = v1::CONTRIBUTION_NONE;
    absl::Duration took;  // since the token was given
  };

  // If not OK, the frame is refused and its stream ends.
  absl::Status status;
  // Workers that have a reply to read.
  absl::InlinedVector<uint64_t, 2> wake;
  // Workers whose waiting frame (FrameStart) must be handed to OnFrame again.
  absl::InlinedVector<uint64_t, 2> resume;
  // Workers whose staged contribution is dropped. Its memory must be freed before their next frame.
  std::vector<uint64_t> unstage;
  // Workers that the machine no longer knows. Their streams must end.
  std::vector<Close> close;
  // All slots of the step are covered. Commit the step, then call OnCommitted, which never sets this.
  bool commit = false;
  // A snapshot of the state at the machine's step must be taken.
  bool snapshot = false;
  // The next step may begin now. Some of the other effects may already announce tokens for it.
  bool begin = false;
  // The step in progress is given up, so its sums must be discarded. The step may begin again.
  bool give_up = false;
  // The run has reached its end. Set once.
  bool complete = false;
  // The reason why the run cannot continue. Set at most once.
  absl::Status failure;
  // The contribution that has ended.
  absl::optional<Contributed> contributed;
  // Events of the run that no other effect reports.
  std::vector<RunEvent> events;
};

// The protocol of the synchronous step (docs/sync.md, docs/glossary.md): what each worker may send, which workers have
// a reply to read, and when a step is committed. Takes events and the time, and returns their effects as values. Keeps
// the leases of tokens, while the policy decides which worker computes what and which contributions count. A frame
// costs O(log N), plus moving elements in a FlatSet. Values and gradients do not pass through the machine. Pure: no
// lock, no clock, no I/O. Not thread-safe.
//
//   event \ state     kRunning   kHeld      kComplete  kStopped   kFailed    kFinished
//   last commit       kComplete  -          -          -          -          -
//   commit at limit   kHeld      -          -          -          -          -
//   deserted*, held   kHeld      -          -          -          -          -
//   deserted*, ends   kComplete  -          -          -          -          -
//   end of the input  kComplete  -          -          -          -          -
//   SetLimit above    kRunning   kRunning   (ignored)  (ignored)  (ignored)  (ignored)
//   room for snapshot kRunning   kRunning   (ignored)  (ignored)  (ignored)  (ignored)
//   EndAt(step())     kRunning   kComplete  (ignored)  (ignored)  (ignored)  (ignored)
//   failure           kFailed    kFailed    kFailed    kFailed    (ignored)  (ignored)
//   Stop              kStopped   kStopped   (ignored)  (ignored)  (ignored)  (ignored)
//   Finish            kFinished  kFinished  kFinished  kFinished  kFinished  kFinished
//
//   * No worker has a token with a running lease for the step in progress, and no frame is being summed into it, while
//   the limit of kChange is below step(), or EndAt has requested the end at the next boundary. The step is given up,
//   because it would wait for a worker that may never come. When it restarts, each worker that had a token for it
//   loses its stream, because the data exchanged over that stream belongs to sums that are gone.
//
// A commit is also "at limit" if a snapshot is due but there is no room for it; a held run continues once both the
// limit and the room allow it. A commit is the "last" one if it reaches the last step, or if the report of one of its
// slots says `stop`.
class StepMachine {
 public:
  // Frames are summed and tokens are issued only in kRunning. In kHeld, no step is in progress. Only in kFinished does
  // a worker that asks for a token learn that the run has ended.
  enum class State { kRunning, kHeld, kComplete, kStopped, kFailed, kFinished };
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  // Parties that can hold the run between two steps: the program that follows it, and requests that end or change it.
  // The lowest limit counts. Only kChange can make the machine give up a step that has begun.
  enum class Limiter { kFollower, kChange };
  struct Options {
    int64_t generation = 0;
    int64_t slots = 1;  // replicas_to_aggregate
    // Maximum number of partial sums of a step; at least LeastPartialSums(slots).
    int64_t max_partial_sums = kNoLimit;
    // Maximum number of contributions staged at once, if the policy stages them.
    int64_t max_staged = kNoLimit;
    int64_t total_steps = 0;
    absl::Duration lease = absl::Seconds(5);
    // A worker that reads no reply for this long loses its stream, because the values that wait for it take memory.
    absl::Duration unread_limit = absl::Seconds(60);
    // A snapshot is due at every multiple of this many steps, when the next step may begin or the run has reached its
    // last step. If 0, never.
    int64_t snapshot_every_steps = 0;
    // If true, the run is held at each step where a snapshot is due until OnRoomForSnapshot has made room for it. Each
    // call makes room for one snapshot; initially, there is room for one.
    bool await_room = false;
    // The initial limit of kFollower.
    int64_t limit = kNoLimit;
  };

  StepMachine(const Options& options, std::unique_ptr<StepPolicy> policy, int64_t step);

  // Handles a new stream of the session. Closes the session's earlier stream, if any.
  StepEffects OnConnected(uint64_t session, std::string name, absl::Time now);
  // Handles the end of the session's stream.
  StepEffects OnDisconnected(uint64_t session, absl::Time now);
  void OnHeartbeat(uint64_t session, absl::Time now);
  // Handles the passage of time: ends leases and closes unread streams.
  StepEffects OnTick(absl::Time now);

  // Handles a frame that has just arrived or, if `resumed`, one that has waited and is passed again. A resumed frame is
  // not a sign of life. An error ends the stream and leaves the run unchanged.
  struct FrameStart {
    bool begins = false;  // the frame is the first of a contribution
    bool wanted = false;  // the contribution counts, so its gradients must be summed or staged
    // The frame must wait: its gradients would exceed the limit of partial sums, no place is free for a staged
    // contribution, or it would complete one while the run is held. Until StepEffects::resume names the worker or its
    // stream ends, the caller must neither use any part of the frame nor read anything more from the worker. `begins`
    // is not repeated.
    bool waits = false;
  };
  // Unless the frame must wait, the caller must call OnSummed or OnOrphanSummed once it has used the frame.
  absl::StatusOr<FrameStart> OnFrame(uint64_t session, const StepFrame& frame, absl::Time now, bool resumed = false);
  // Handles the session's complete staged contribution. If it counts, returns its place among the step's contributions;
  // it then counts even if its stream ends, and the caller must add it to the sums and call OnSummed or OnOrphanSummed
  // before it calls OnStaged again or handles the end of an input. If it does not count, returns nullopt, and none of
  // it may be used.
  absl::optional<int64_t> OnStaged(uint64_t session, absl::Time now);
  // The result of a frame that was checked and, if still wanted, summed.
  struct FrameResult {
    bool end = false, leave = false;  // from the frame
    bool wanted = false;              // the frame was summed, and its step is still in progress
    bool admitted = false;            // OnStaged has returned a place for it
    bool any_new = false;             // some of its gradients had not been summed before
    bool summed = false;              // every sum of the step is complete
    bool input_ended = false;         // before one of the slots, so the step cannot be completed
    absl::Status failure;             // the contribution cannot be used by any step
    // StepFrame.digests; may be null.
    const std::vector<uint64_t>* digests = nullptr;
  };
  StepEffects OnSummed(uint64_t session, const FrameResult& result, absl::Time now);
  // Like OnSummed, for a frame whose stream has ended in the meantime.
  StepEffects OnOrphanSummed(const FrameResult& result, absl::Time now);
  // Handles the commit of the step. `last` is true if a contribution to it requested the end of the run.
  StepEffects OnCommitted(bool last, absl::Time now);

  // Lets the step from s to s + 1 begin only if s <= limit. A step that has begun continues, unless it is given up.
  StepEffects SetLimit(Limiter limiter, int64_t limit, absl::Time now);
  // Records that another snapshot may be taken.
  StepEffects OnRoomForSnapshot(absl::Time now);
  // Takes the room for a snapshot that is not due. Returns false if there is no room, or if the run has ended before
  // its last step, because the code that records the end saves that step.
  bool TakeRoom();
  // Ends the run at `step`, which is the current one if the machine is held, or a later one. The run ends one step
  // earlier if its last step is given up. Ignored if the run would end before `step`.
  StepEffects EndAt(int64_t step, absl::Time now);

  // A reply to a worker.
  struct Reply {
    v1::ContributionResult result = v1::CONTRIBUTION_NONE;  // of the worker's last contribution
    absl::optional<StepToken> token;                        // set once the worker has the values of the token's step
    bool takes_values = false;  // the worker can use values now: those of its token's step, or the next ones
    bool finished = false;
  };
  // Returns the next reply to a worker that is ready to read one, or nullopt if there is none. After a reply with
  // `finished`, the worker has left.
  absl::optional<Reply> NextReply(uint64_t session, absl::Time now);
  // Records that a reply is being sent. If it has a token, `values_step` is the step of the values that come with the
  // token.
  void OnReplySent(uint64_t session, absl::optional<int64_t> values_step);

  // Stops committing steps and issuing tokens. Does not notify workers.
  StepEffects Stop();
  // Ends the steps like Stop, and notifies every worker that waits now or asks later that the run has ended.
  StepEffects Finish();

  int64_t step() const { return step_; }
  State state() const { return state_; }
  // Returns true if a step is in progress.
  bool running() const { return state_ == State::kRunning; }
  // Returns the global step at which the run ends.
  int64_t total_steps() const { return total_steps_; }
  // Returns the next global step at which the machine can be held or end, unless the step in progress is given up. If
  // no step is in progress, this is the current one.
  int64_t next_boundary() const { return running() ? step_ + 1 : step_; }
  bool idle() const { return workers_.empty(); }
  bool connected(uint64_t session) const { return workers_.count(session) > 0; }
  // Returns the sessions that have contributed, or are contributing, to the step in progress. They can use the next
  // values. A contribution of one frame counts from its end.
  const FlatSet<uint64_t>& contributors() const { return contributors_; }
  StepPolicy::Traits traits() const { return policy_->traits(); }
  // Returns StepPolicy::stream_positions at step().
  std::vector<int64_t> stream_positions() const { return policy_->stream_positions(); }
  // Returns true if the session has a token with a running lease.
  bool holds_lease(uint64_t session) const { return leases_.Find(session) != nullptr; }
  // Fills in the policy's part of the run's status.
  void FillStatus(v1::RunStatus* status) const { policy_->FillStatus(status); }
  // Fills in the counters of tokens and of the admission of contributions.
  void FillCounters(v1::RunCounters* counters) const;
  // Fills in the machine's part of the status of a connected worker.
  void FillStatus(uint64_t session, absl::Time now, v1::WorkerStatus* status) const;

 private:
  // Resumes contributions that wait for admission: those for which there is room, or all if no step is in progress.
  void Admit(absl::Time now, StepEffects* effects);
  // Gives free places for staged contributions to waiting sessions.
  void AdmitToStaging(absl::Time now, StepEffects* effects);
  // Resumes contributions that wait for a place but are no longer wanted after a commit.
  void ReleaseUnwanted(absl::Time now, StepEffects* effects);
  // Frees the places of workers that have sent nothing for as long as a lease, if others wait.
  void TakePlacesBack(absl::Time now, StepEffects* effects);
  // Decides whether the gradients of the frame, which is otherwise wanted, may be used now.
  void AskForRoom(uint64_t session, const StepFrame& frame, absl::Time now, FrameStart* start);
  // Ends all waits for admission, because the step restarts or has ended.
  void RestartAdmission(StepEffects* effects);
  // If no contribution in progress could make room, makes the last waiting worker drop its contribution and compute the
  // slots of a missing worker instead.
  void EndStall(absl::Time now, StepEffects* effects);
  // Updates the indexes and the policy after a worker has changed.
  void Update(uint64_t session, const WorkerState& worker);
  void Remove(uint64_t session);
  // Ends the session's lease, if it holds one.
  void Release(uint64_t session);
  // Records that the session's contribution no longer waits for others.
  void Resume(uint64_t session, absl::Time now);
  // Returns true if some worker computes or contributes and is not slow, so that its contribution may make room for
  // those that wait.
  bool AnyInTime(absl::Time now) const;
  // Reports the contribution to the policy with the session's lease, which ends if the contribution counts.
  StepPolicy::Outcome TellContribution(StepPolicy::Contribution contribution, absl::Time now);
  // Issues the tokens that the policy assigns.
  void Assign(absl::Time now, StepEffects* effects);
  // Ends all leases, and voids the tokens that were issued but not sent.
  void VoidTokens();
  // Records that the frame was summed, and whether the sums are complete.
  void OnSums(const FrameResult& result);
  // Commits the step if its sums are complete and the policy waits for nothing else. Otherwise, issues tokens.
  void CommitOrAssign(absl::Time now, StepEffects* effects);
  void CommitIfComplete(absl::Time now, StepEffects* effects);
  // Gives up the step if it is deserted and the run must be held or must end.
  void GiveUpIfDeserted(StepEffects* effects);
  // Resumes the frames that wait for the end of a hold.
  void ResumeHeld(StepEffects* effects);
  // Ends all waits for the end of a hold or for a place, because no more steps follow.
  void EndWaits(StepEffects* effects);
  // Returns true if the frame, which is part of a contribution, must wait until the run is no longer held.
  bool WaitsForHold(uint64_t session, const StepFrame& frame, bool accepted) const;
  // Prepares the restart of a step that was given up: closes the streams of the workers that had a token for it.
  void ForgetGivenUp(StepEffects* effects);
  void Fail(const absl::Status& failure, StepEffects* effects);
  int64_t limit() const { return *std::min_element(limits_.begin(), limits_.end()); }
  // Ends the run, holds it, or begins the next step. Called at a boundary.
  void Proceed(absl::Time now, StepEffects* effects);
  void Complete(StepEffects* effects);
  bool snapshot_due() const {
    return options_.snapshot_every_steps > 0 && step_ > 0 && step_ % options_.snapshot_every_steps == 0;
  }
  void EndContribution(uint64_t session, const FrameResult& result, absl::Time now, StepEffects* effects);

  const Options options_;
  const std::unique_ptr<StepPolicy> policy_;
  const bool stages_;  // the policy stages contributions
  int64_t total_steps_;
  std::array<int64_t, 2> limits_;  // by Limiter
  // True if there is room for a snapshot. Changes only with await_room.
  bool room_ = true;
  State state_;
  int64_t step_;
  // True if the run was requested to end at the next boundary.
  bool end_asked_ = false;
  // The progress of the step from step_ to step_ + 1.
  struct Progress {
    bool summed = false;    // the step's sums are complete
    int summing = 0;        // frames that are being summed
    int64_t admitted = 0;   // staged contributions that count
    bool given_up = false;  // the step must restart
  };
  Progress progress_;
  SumAdmission admission_;
  StagingPlaces staging_;
  TokenLeases leases_;
  std::map<uint64_t, WorkerState> workers_;
  // Indexes over workers_: workers with an unsent token, silent workers, and contributors().
  FlatSet<uint64_t> assigned_;
  FlatSet<uint64_t> silent_;
  FlatSet<uint64_t> contributors_;
  // Sessions whose frame waits for the end of a hold.
  FlatSet<uint64_t> held_;
  // Numbers since the start, for display.
  int64_t backup_tokens_ = 0;
  int64_t contribution_waits_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_MACHINE_STEP_MACHINE_H_
