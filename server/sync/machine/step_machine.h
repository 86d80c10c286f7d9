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

namespace lockstep {

// The effects of one event. The owner (SyncReplicas) carries them out in this order:
//
//   while it holds the machine's lock, and so before the machine's next event
//     1. contributed: count the contribution
//     2. snapshot: take it, before the next step begins
//     3. begin: make the sums of the next step
//     4. give_up, complete: throw the sums away
//     5. unstage, close: drop what these have staged; forget these streams, which `resume` may still name, and `wake`
//        does not
//     6. commit: apply the sums and call OnCommitted. Its effects follow in the same order, except that `begin` is the
//        last: streams that keep too many old values end first, and give up their memory
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

  // Not OK: the frame is refused, and its stream ends.
  absl::Status status;
  // Workers that have a reply to read.
  absl::InlinedVector<uint64_t, 2> wake;
  // Workers whose waiting frame (FrameStart) must be handed to OnFrame again.
  absl::InlinedVector<uint64_t, 2> resume;
  // Workers whose staged contribution is dropped: its memory must be freed, also before their next frame.
  std::vector<uint64_t> unstage;
  // Workers that the machine no longer knows; their streams must end.
  std::vector<Close> close;
  // The step is covered. Commit it, then call OnCommitted, which never sets this.
  bool commit = false;
  // A snapshot of the state at the machine's step must be taken.
  bool snapshot = false;
  // The next step may begin now: tokens for it are among what follows.
  bool begin = false;
  // The step in progress is given up: its sums must be thrown away. It may begin again.
  bool give_up = false;
  // The run has reached its end. Set once.
  bool complete = false;
  // The reason why the run cannot continue. Not OK at most once.
  absl::Status failure;
  // The contribution that has ended.
  absl::optional<Contributed> contributed;
  // Events of the run that no other effect tells.
  std::vector<RunEvent> events;
};

// The protocol of the synchronous step (docs/sync.md, docs/glossary.md): who may send what, who has a reply to read,
// when a step is committed. Events and the time come in, what follows from them comes out as values. It keeps the
// leases of tokens; which worker computes what, and what counts, is the policy's choice. A frame costs O(log N) and a
// move in memory (FlatSet). Values and gradients pass it by. Pure: no lock, no clock, no I/O. Not thread-safe.
//
//   event \ state     kRunning   kHeld      kComplete  kStopped   kFailed    kFinished
//   last commit       kComplete  -          -          -          -          -
//   commit at limit   kHeld      -          -          -          -          -
//   deserted¹, held   kHeld      -          -          -          -          -
//   deserted¹, ends   kComplete  -          -          -          -          -
//   end of the input  kComplete  -          -          -          -          -
//   SetLimit above    kRunning   kRunning   (ignored)  (ignored)  (ignored)  (ignored)
//   room for snapshot kRunning   kRunning   (ignored)  (ignored)  (ignored)  (ignored)
//   EndAt(step())     kRunning   kComplete  (ignored)  (ignored)  (ignored)  (ignored)
//   failure           kFailed    kFailed    kFailed    kFailed    (ignored)  (ignored)
//   Stop              kStopped   kStopped   (ignored)  (ignored)  (ignored)  (ignored)
//   Finish            kFinished  kFinished  kFinished  kFinished  kFinished  kFinished
//
//   ¹ Nobody has a token of the step in progress whose lease runs, and no frame is being summed into it, while the
//   limit of kChange is below step(), or EndAt has asked for the end at the next boundary. The step would wait for a
//   worker that may never come: it is given up. When it begins anew, who had a token of it before loses the stream:
//   what that worker was sent, or has sent in part, belongs to sums that are gone.
//
// "At limit" is also where a snapshot is due for which there is no room; both have to let a held run go on. "Last
// commit" is one that reaches the last step, or to which a slot was contributed whose report says `stop`.
class StepMachine {
 public:
  // Only while it is running are frames summed and tokens given. While it is held, no step is in progress. Those who
  // ask hear that the run is over once it is finished, and nothing before.
  enum class State { kRunning, kHeld, kComplete, kStopped, kFailed, kFinished };
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  // Who may hold the run between two steps: the program that follows it, and somebody who ends it or changes it. The
  // lowest limit counts. Of a step that has begun only kChange can make the machine give up.
  enum class Limiter { kFollower, kChange };
  struct Options {
    int64_t generation = 0;
    int64_t slots = 1;  // replicas_to_aggregate
    // Partial sums that a step may hold at once, LeastPartialSums(slots) or more.
    int64_t max_partial_sums = kNoLimit;
    // Contributions that may be staged at once, if the policy stages them.
    int64_t max_staged = kNoLimit;
    int64_t total_steps = 0;
    absl::Duration lease = absl::Seconds(5);
    // A worker that takes no reply for this long loses its stream: the values that wait for it take memory.
    absl::Duration unread_limit = absl::Seconds(60);
    // A snapshot is due at every multiple of this many steps, when the step that follows may begin or the run has come
    // to its last step; 0: never.
    int64_t snapshot_every_steps = 0;
    // The run is held where a snapshot is due until OnRoomForSnapshot, once for each snapshot. There is room for one at
    // first.
    bool await_room = false;
    // SetLimit(kFollower).
    int64_t limit = kNoLimit;
  };

  StepMachine(const Options& options, std::unique_ptr<StepPolicy> policy, int64_t step);

  // A stream of the session has opened; an earlier one is closed.
  StepEffects OnConnected(uint64_t session, std::string name, absl::Time now);
  // The session's stream has ended.
  StepEffects OnDisconnected(uint64_t session, absl::Time now);
  void OnHeartbeat(uint64_t session, absl::Time now);
  // Some time has passed: leases end, unread streams are closed.
  StepEffects OnTick(absl::Time now);

  // A frame has come, or one that has waited is handed over again (`resumed`), which is no sign of life. Errors end the
  // stream and leave the run as it was.
  struct FrameStart {
    bool begins = false;  // it is the first of a contribution
    bool wanted = false;  // the contribution counts: its gradients are to be summed, or staged
    // Its gradients would take more partial sums than there may be, or no place is free for a staged contribution, or
    // it would complete one while the run is held: nothing of it is to be used, nothing read from the worker, until
    // StepEffects::resume names it or its stream ends. `begins` is not said again.
    bool waits = false;
  };
  absl::StatusOr<FrameStart> OnFrame(uint64_t session, const StepFrame& frame, absl::Time now, bool resumed = false);
  // If the policy stages contributions, the session's is whole. Returns its place among those of the step if it counts,
  // which it does from now on, whatever becomes of its stream: it is to be added to the sums, and OnSummed or
  // OnOrphanSummed follows before another OnStaged or the end of an input. Otherwise nothing of it is used.
  absl::optional<int64_t> OnStaged(uint64_t session, absl::Time now);
  // The frame was checked and, if it is wanted still, summed.
  struct FrameResult {
    bool end = false, leave = false;  // as the frame says
    bool wanted = false;              // it was summed, and its step is still in progress
    bool admitted = false;            // OnStaged has returned a place for it
    bool any_new = false;             // some of its gradients were not summed before
    bool summed = false;              // every sum of the step is complete
    bool input_ended = false;         // before one of the slots: the step cannot be made
    absl::Status failure;             // what was contributed cannot be used by anyone
    // StepFrame.digests; may be null.
    const std::vector<uint64_t>* digests = nullptr;
  };
  StepEffects OnSummed(uint64_t session, const FrameResult& result, absl::Time now);
  // The same for a frame whose stream has ended meanwhile.
  StepEffects OnOrphanSummed(const FrameResult& result, absl::Time now);
  // The step is committed. `last`: a contribution to it asked for the end of the run.
  StepEffects OnCommitted(bool last, absl::Time now);

  // The step that makes s + 1 of s begins only if s <= limit. One that has begun goes on, unless it is given up.
  StepEffects SetLimit(Limiter limiter, int64_t limit, absl::Time now);
  // Another snapshot may be taken.
  StepEffects OnRoomForSnapshot(absl::Time now);
  // Takes the room for a snapshot that is not due; false when there is none, or the run has ended before its last step:
  // a checkpoint of that step is for whoever records it.
  bool TakeRoom();
  // The run is to end at `step`, the present one while the machine is held, or a later one; before its last step when
  // that is given up. Ignored when it would end before.
  StepEffects EndAt(int64_t step, absl::Time now);

  // What there is to tell the worker.
  struct Reply {
    v1::ContributionResult result = v1::CONTRIBUTION_NONE;  // of its last contribution
    absl::optional<StepToken> token;                        // once it has the values of the token's step
    bool takes_values = false;  // it can use values now: of its token's step, or the next ones
    bool finished = false;
  };
  // Asked by a worker that reads; nullopt when there is nothing to say. After `finished` the worker has left.
  absl::optional<Reply> NextReply(uint64_t session, absl::Time now);
  // A reply is being sent; if with its token, `values_step` is the step of the values that the token comes with.
  void OnReplySent(uint64_t session, absl::optional<int64_t> values_step);

  // No further step is committed, no token given; no worker is notified.
  StepEffects Stop();
  // Ends the steps as Stop does, and notifies every worker that waits, or asks later, that the run is over.
  StepEffects Finish();

  int64_t step() const { return step_; }
  State state() const { return state_; }
  // A step is in progress.
  bool running() const { return state_ == State::kRunning; }
  // The global step at which the run ends.
  int64_t total_steps() const { return total_steps_; }
  // The next global step at which the machine can be held, or end, as long as somebody is at the step in progress: the
  // present one if there is none.
  int64_t next_boundary() const { return running() ? step_ + 1 : step_; }
  bool idle() const { return workers_.empty(); }
  bool connected(uint64_t session) const { return workers_.count(session) > 0; }
  // Those who have contributed to the step in progress, or are at it: they can use the next values.
  const FlatSet<uint64_t>& contributors() const { return contributors_; }
  StepPolicy::Traits traits() const { return policy_->traits(); }
  // StepPolicy::stream_positions, at step().
  std::vector<int64_t> stream_positions() const { return policy_->stream_positions(); }
  // True if the session has a token whose lease runs.
  bool holds_lease(uint64_t session) const { return leases_.Find(session) != nullptr; }
  // Fills what the policy has to say of the run.
  void FillStatus(v1::RunStatus* status) const { policy_->FillStatus(status); }
  // Fills what the machine knows of a connected worker.
  void FillStatus(uint64_t session, absl::Time now, v1::WorkerStatus* status) const;

 private:
  // Lets those that wait for admission go on: the ones for which there is room, or all if no step is in progress.
  void Admit(absl::Time now, StepEffects* effects);
  // Gives free places for staged contributions to sessions that wait for one.
  void AdmitToStaging(absl::Time now, StepEffects* effects);
  // A commit has made contributions unwanted: those of them that wait for a place wait no longer.
  void ReleaseUnwanted(absl::Time now, StepEffects* effects);
  // Frees the places of workers that have sent nothing for a lease, for those that wait.
  void TakePlacesBack(absl::Time now, StepEffects* effects);
  // Judges whether the gradients of the frame, which is wanted otherwise, may be used now.
  void AskForRoom(uint64_t session, const StepFrame& frame, absl::Time now, FrameStart* start);
  // The step begins anew, or is over.
  void RestartAdmission(StepEffects* effects);
  // If nobody is at work whose contribution could make room: has the last of those that wait drop theirs, and take the
  // place of whoever is missing.
  void EndStall(absl::Time now, StepEffects* effects);
  // After each change of a worker.
  void Update(uint64_t session, const WorkerState& worker);
  void Remove(uint64_t session);
  // Ends the session's lease, if it holds one.
  void Release(uint64_t session);
  // The session's contribution waits for others no longer.
  void Resume(uint64_t session, absl::Time now);
  // True if some worker computes or contributes and is not slow: what it brings may make room for those that wait.
  bool AnyInTime(absl::Time now) const;
  // Tells the policy, with the session's lease, which ends if the contribution counts.
  StepPolicy::Outcome TellContribution(StepPolicy::Contribution contribution, absl::Time now);
  // Gives out what can be given.
  void Assign(absl::Time now, StepEffects* effects);
  // All leases end; tokens that were given and not sent are void.
  void VoidTokens();
  // Notes that the sums are complete.
  void OnSums(const FrameResult& result);
  // Has the step committed if its sums are complete and the policy waits for nothing else; else gives out what can be
  // given.
  void CommitOrAssign(absl::Time now, StepEffects* effects);
  void CommitIfComplete(absl::Time now, StepEffects* effects);
  // Gives up a step that is deserted where the run is to be held, or to end.
  void GiveUpIfDeserted(StepEffects* effects);
  // Lets the frames that wait for the end of a hold go on.
  void ResumeHeld(StepEffects* effects);
  // Ends every wait for the end of a hold or for a place, because the steps are over.
  void EndWaits(StepEffects* effects);
  // Returns true if the frame, which is part of a contribution, must wait until the run is no longer held.
  bool WaitsForHold(uint64_t session, const StepFrame& frame, bool accepted) const;
  // The step that was given up may begin: closes those that had a token of it.
  void ForgetGivenUp(StepEffects* effects);
  void Fail(const absl::Status& failure, StepEffects* effects);
  int64_t limit() const { return *std::min_element(limits_.begin(), limits_.end()); }
  // At a boundary: ends, is held, or begins the next step.
  void Proceed(absl::Time now, StepEffects* effects);
  void Complete(StepEffects* effects);
  bool snapshot_due() const {
    return options_.snapshot_every_steps > 0 && step_ > 0 && step_ % options_.snapshot_every_steps == 0;
  }
  void EndContribution(uint64_t session, const FrameResult& result, absl::Time now, StepEffects* effects);

  const Options options_;
  const std::unique_ptr<StepPolicy> policy_;
  const bool stages_;  // contributions
  int64_t total_steps_;
  std::array<int64_t, 2> limits_;  // by Limiter
  // Only with await_room.
  bool room_ = true;
  State state_;
  int64_t step_;
  // The end was asked for at the next boundary.
  bool end_asked_ = false;
  // Of the step after step_.
  struct Progress {
    bool summed = false;    // its sums are complete
    int summing = 0;        // frames that are being summed into it
    int64_t admitted = 0;   // staged contributions that count
    bool given_up = false;  // it is to begin anew
  };
  Progress progress_;
  SumAdmission admission_;
  StagingPlaces staging_;
  TokenLeases leases_;
  std::map<uint64_t, WorkerState> workers_;
  // Indexes over workers_: with a token that was not sent, silent, and contributors().
  FlatSet<uint64_t> assigned_;
  FlatSet<uint64_t> silent_;
  FlatSet<uint64_t> contributors_;
  // Sessions whose frame waits for the end of a hold.
  FlatSet<uint64_t> held_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_MACHINE_STEP_MACHINE_H_
