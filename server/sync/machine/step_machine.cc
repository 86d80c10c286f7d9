#include "lockstep/server/sync/machine/step_machine.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

StepMachine::StepMachine(const Options& options, std::unique_ptr<StepPolicy> policy, int64_t step)
    : options_(options),
      policy_(std::move(policy)),
      stages_(!policy_->traits().sums_while_streaming),
      total_steps_(options.total_steps),
      limits_({options.limit, kNoLimit}),
      state_(step >= total_steps_ ? State::kComplete
             : step > limit()     ? State::kHeld
                                  : State::kRunning),
      step_(step),
      // Staged contributions are summed in slot order, which needs the fewest partial sums.
      admission_(options.slots, stages_ ? kNoLimit : options.max_partial_sums),
      staging_(options.max_staged),
      leases_(options.lease) {}

void StepMachine::Update(uint64_t session, const WorkerState& worker) {
  using Phase = WorkerState::Phase;
  assigned_.Set(session, worker.phase() == Phase::kAssigned);
  silent_.Set(session, worker.silent());
  const bool takes_values = worker.phase() == Phase::kWaiting || worker.phase() == Phase::kPushing;
  contributors_.Set(session, takes_values && worker.contributed_step() == step_);
  policy_->Update(session, worker);
}

void StepMachine::Release(uint64_t session) {
  if (const auto lease = leases_.Release(session)) policy_->OnReleased(*lease, /*expired=*/false);
}

void StepMachine::Resume(uint64_t session, absl::Time now) {
  if (const TokenLease* const lease = leases_.Resume(session, now)) policy_->OnResumed(*lease);
}

void StepMachine::Remove(uint64_t session) {
  admission_.End(session, SlotBlock(), /*covers=*/false);
  staging_.End(session);
  held_.erase(session);
  if (const auto lease = leases_.Remove(session)) policy_->OnReleased(*lease, /*expired=*/false);
  policy_->Remove(session);
  assigned_.erase(session);
  silent_.erase(session);
  contributors_.erase(session);
  workers_.erase(session);
}

void StepMachine::Assign(absl::Time now, StepEffects* effects) {
  if (!running()) return;
  for (const StepPolicy::Assignment& assignment : policy_->Assign(leases_, now)) {
    WorkerState& worker = workers_.at(assignment.session);
    leases_.Give(assignment.session, assignment.token, assignment.backup, now);
    if (assignment.backup) ++backup_tokens_;
    worker.OnAssigned(assignment.token, now);
    Update(assignment.session, worker);
    effects->wake.push_back(assignment.session);
  }
}

void StepMachine::RestartAdmission(StepEffects* effects) {
  for (const uint64_t session : admission_.Restart()) effects->resume.push_back(session);
}

void StepMachine::ResumeHeld(StepEffects* effects) {
  effects->resume.insert(effects->resume.end(), held_.begin(), held_.end());
  held_.clear();
}

void StepMachine::EndWaits(StepEffects* effects) {
  ResumeHeld(effects);
  for (const uint64_t session : staging_.Clear()) effects->resume.push_back(session);
}

void StepMachine::AdmitToStaging(absl::Time now, StepEffects* effects) {
  const bool open = running() || state_ == State::kHeld;
  for (const uint64_t session : open ? staging_.Admit(now) : staging_.Clear()) {
    Resume(session, now);
    effects->resume.push_back(session);
  }
}

void StepMachine::ReleaseUnwanted(absl::Time now, StepEffects* effects) {
  if (staging_.line().empty()) return;
  for (const uint64_t session : std::deque<uint64_t>(staging_.line())) {
    if (policy_->Judge(*workers_.at(session).last_token()) == v1::CONTRIBUTION_ACCEPTED) continue;
    staging_.End(session);
    Resume(session, now);
    effects->resume.push_back(session);
  }
}

void StepMachine::TakePlacesBack(absl::Time now, StepEffects* effects) {
  if (!stages_ || !running()) return;  // no contribution can be completed while the run is held
  for (const uint64_t session : staging_.TakeBack(now - options_.lease)) {
    const WorkerState& worker = workers_.at(session);
    effects->events.push_back({RunEvent::kPlaceTaken, step_, worker.name(), worker.last_token()->ToString()});
    effects->events.back().time = options_.lease;
    effects->unstage.push_back(session);
  }
}

void StepMachine::Admit(absl::Time now, StepEffects* effects) {
  if (effects->commit) return;
  AdmitToStaging(now, effects);
  if (!admission_.any_waiting()) return;
  if (!running()) return RestartAdmission(effects);
  for (const uint64_t session : admission_.Admit()) {
    Resume(session, now);
    effects->resume.push_back(session);
  }
}

bool StepMachine::AnyInTime(absl::Time now) const {
  bool any = false;
  leases_.ForEach([&](const TokenLease& lease) { any = any || (!lease.suspended && !policy_->IsSlow(lease, now)); });
  return any;
}

void StepMachine::EndStall(absl::Time now, StepEffects* effects) {
  if (!running() || effects->commit || !admission_.any_waiting() || AnyInTime(now)) return;
  const uint64_t session = admission_.last_waiting();
  const WorkerState& worker = workers_.at(session);
  const StepToken& token = *worker.last_token();
  effects->events.push_back({RunEvent::kBlockDropped, token.step, worker.name(), "", {}, token.block});
  admission_.Drop(session);
  Resume(session, now);
  effects->resume.push_back(session);
}

void StepMachine::VoidTokens() {
  leases_.Clear();
  for (const uint64_t session : FlatSet<uint64_t>(assigned_)) {
    WorkerState& worker = workers_.at(session);
    worker.OnVoided();
    Update(session, worker);
  }
}

StepEffects StepMachine::OnConnected(uint64_t session, std::string name, absl::Time now) {
  StepEffects effects;
  if (connected(session)) {
    Remove(session);
    effects.close.push_back(
        {session,
         absl::AbortedError(absl::StrCat("session ", ShortSessionId(session), " has opened another Step stream")),
         /*at_once=*/true});
  }
  const auto it = workers_.emplace(session, WorkerState(std::move(name), now)).first;
  Update(session, it->second);
  CommitOrAssign(now, &effects);
  return effects;
}

StepEffects StepMachine::OnDisconnected(uint64_t session, absl::Time now) {
  StepEffects effects;
  Remove(session);
  CommitOrAssign(now, &effects);
  return effects;
}

void StepMachine::OnHeartbeat(uint64_t session, absl::Time now) {
  leases_.Renew(session, now);
  const auto it = workers_.find(session);
  if (it == workers_.end()) return;
  it->second.OnHeard(now);
  Update(session, it->second);
}

StepEffects StepMachine::OnTick(absl::Time now) {
  StepEffects effects;
  for (const TokenLease& lease : leases_.Expire(now)) {
    policy_->OnReleased(lease, /*expired=*/true);
    WorkerState& worker = workers_.at(lease.session);
    effects.events.push_back(
        {RunEvent::kLeaseEnded, lease.token.step, worker.name(), "", {}, lease.token.block, options_.lease});
    if (lease.token.batch) effects.events.back().text = lease.token.ToString();
    worker.OnLeaseEnded();
    Update(lease.session, worker);
    // Reading more from the worker shows whether it is still there.
    const bool waits_for_place = staging_.waits(lease.session);
    if (waits_for_place) staging_.Drop(lease.session);
    if (admission_.waits(lease.session)) {
      admission_.Drop(lease.session);
    } else if (!waits_for_place) {
      continue;
    }
    effects.resume.push_back(lease.session);
  }
  TakePlacesBack(now, &effects);
  for (const uint64_t session : FlatSet<uint64_t>(silent_)) {
    const WorkerState& worker = workers_.at(session);
    // If a token is still unsent when its lease ends, it is stuck behind a reply that the worker does not read.
    if (!worker.awaits_token() || now - worker.heard() < options_.unread_limit) continue;
    const std::string limit = absl::FormatDuration(options_.unread_limit);
    effects.events.push_back({RunEvent::kUnread, step_, worker.name(), "", {}, {}, options_.unread_limit});
    effects.close.push_back(
        {session, absl::AbortedError(absl::StrCat("no reply was read for ", limit)), /*at_once=*/true});
    Remove(session);
  }
  CommitOrAssign(now, &effects);
  EndStall(now, &effects);
  return effects;
}

absl::StatusOr<StepMachine::FrameStart> StepMachine::OnFrame(uint64_t session, const StepFrame& frame, absl::Time now,
                                                             bool resumed) {
  if (frame.generation != options_.generation) {
    return absl::AbortedError(
        absl::StrCat("generation ", frame.generation, " is over, the chief's is ", options_.generation));
  }
  if (frame.session_id != session) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of session ", frame.session_id, " on the stream of session ", session));
  }
  WorkerState& worker = workers_.at(session);
  const bool was_silent = worker.silent();
  resumed ? worker.OnWaited(now) : worker.OnHeard(now);
  if (worker.not_before_step() == WorkerState::kNever) {
    worker.SetStart(std::min(frame.startup_delay_steps, total_steps_));
  }
  FrameStart start;
  if (frame.block.count == 0) {
    if (worker.phase() == WorkerState::Phase::kPushing) {
      return absl::InvalidArgumentError("the previous contribution was not finished");
    }
  } else {
    start.begins = worker.phase() != WorkerState::Phase::kPushing;
    RETURN_IF_ERROR(worker.OnContribution({frame.step, frame.block}));
    if (!resumed) leases_.Renew(session, now);
    const bool accepted = policy_->Judge(*worker.last_token()) == v1::CONTRIBUTION_ACCEPTED;
    start.waits = WaitsForHold(session, frame, accepted);
    if (start.waits) {
      worker.OnWait(now);
      held_.insert(session);
      Update(session, worker);
      return start;
    }
    start.wanted = accepted && (running() || (stages_ && state_ == State::kHeld));
    AskForRoom(session, frame, now, &start);
    if (start.waits) {
      worker.OnWait(now);
      policy_->OnSuspended(leases_.Suspend(session, now));
      if (!resumed) ++contribution_waits_;
    }
    if (start.wanted && !stages_) ++progress_.summing;
  }
  // A whole contribution is soon followed by OnSummed, which updates the rest, or by the end of the stream.
  const bool whole = start.begins && frame.end && !start.waits;
  if (!whole || was_silent) Update(session, worker);
  return start;
}

void StepMachine::AskForRoom(uint64_t session, const StepFrame& frame, absl::Time now, FrameStart* start) {
  if (!start->wanted) return staging_.End(session);
  if (stages_) {
    if (frame.gradients.empty() && !staging_.drops(session)) return;
    const StagingPlaces::Verdict verdict = staging_.Ask(session, now);
    start->wanted = verdict == StagingPlaces::Verdict::kStage;
    start->waits = verdict == StagingPlaces::Verdict::kWait;
  } else if (!frame.gradients.empty() || admission_.drops(session)) {
    const SumAdmission::Verdict verdict = admission_.Ask(session, frame.block);
    start->wanted = verdict == SumAdmission::Verdict::kSum;
    start->waits = verdict == SumAdmission::Verdict::kWait;
  }
}

bool StepMachine::WaitsForHold(uint64_t session, const StepFrame& frame, bool accepted) const {
  const bool completes = frame.end && !frame.end_of_input;
  return accepted && completes && state_ == State::kHeld && stages_ && !staging_.drops(session);
}

absl::optional<int64_t> StepMachine::OnStaged(uint64_t session, absl::Time now) {
  const WorkerState& worker = workers_.at(session);
  const StepToken token = *worker.last_token();
  if (!running() || policy_->Judge(token) != v1::CONTRIBUTION_ACCEPTED) return absl::nullopt;
  TellContribution({session, worker.name(), token, nullptr, /*counts=*/true, now - worker.token_time()}, now);
  ++progress_.summing;
  return progress_.admitted++;
}

void StepMachine::Fail(const absl::Status& failure, StepEffects* effects) {
  if (failure.ok() || state_ == State::kFailed || state_ == State::kFinished) return;  // several frames may fail alike
  state_ = State::kFailed;
  effects->failure = failure;
}

void StepMachine::GiveUpIfDeserted(StepEffects* effects) {
  if (!running() || effects->commit || progress_.summed || progress_.summing > 0 || !leases_.empty()) return;
  if (end_asked_) {
    effects->events.push_back({RunEvent::kEndsDeserted, step_});
    Complete(effects);
  } else if (limits_[static_cast<size_t>(Limiter::kChange)] < step_) {
    state_ = State::kHeld;
    progress_.given_up = true;
    contributors_.clear();
    effects->give_up = true;
  }
}

void StepMachine::ForgetGivenUp(StepEffects* effects) {
  for (const auto& [session, worker] : workers_) {
    const bool was_at_it = worker.last_token() && worker.last_token()->step == step_;
    if (!was_at_it || worker.phase() == WorkerState::Phase::kLeft) continue;
    effects->close.push_back({session, absl::AbortedError("the step was given up and restarts"), /*at_once=*/true});
  }
  for (const StepEffects::Close& close : effects->close) Remove(close.session);
  RestartAdmission(effects);
  policy_->RestartStep();
  progress_ = Progress();
}

void StepMachine::Complete(StepEffects* effects) {
  EndWaits(effects);
  state_ = State::kComplete;
  total_steps_ = step_;
  effects->complete = true;
}

bool StepMachine::TakeRoom() {
  if (!room_ || (state_ == State::kComplete && step_ < options_.total_steps)) return false;
  room_ = !options_.await_room;
  return true;
}

StepEffects StepMachine::OnRoomForSnapshot(absl::Time now) {
  StepEffects effects;
  room_ = true;
  if (state_ == State::kHeld) Proceed(now, &effects);
  return effects;
}

void StepMachine::Proceed(absl::Time now, StepEffects* effects) {
  if (step_ >= total_steps_) {
    Complete(effects);
    // Otherwise, the code that ends the run saves this step. If the run ends before its last step, that code saves once
    // the end is recorded.
    effects->snapshot = snapshot_due() && TakeRoom();
    return;
  }
  // If the step restarts, its snapshot was already taken.
  const bool snapshot = snapshot_due() && !progress_.given_up;
  if (step_ > limit() || (snapshot && !room_)) {
    state_ = State::kHeld;
    return;
  }
  state_ = State::kRunning;
  ResumeHeld(effects);
  staging_.Touch(now);
  effects->begin = true;
  effects->snapshot = snapshot && TakeRoom();
  if (progress_.given_up) ForgetGivenUp(effects);
  Assign(now, effects);
  GiveUpIfDeserted(effects);
}

StepEffects StepMachine::SetLimit(Limiter limiter, int64_t limit, absl::Time now) {
  StepEffects effects;
  limits_[static_cast<size_t>(limiter)] = limit;
  if (state_ == State::kHeld) Proceed(now, &effects);
  GiveUpIfDeserted(&effects);
  return effects;
}

StepEffects StepMachine::EndAt(int64_t step, absl::Time now) {
  StepEffects effects;
  if (step > total_steps_ || (state_ != State::kRunning && state_ != State::kHeld)) return effects;
  total_steps_ = std::max(step, next_boundary());
  if (total_steps_ <= step_ + 1) end_asked_ = true;
  if (state_ == State::kHeld && step_ >= total_steps_) Proceed(now, &effects);
  GiveUpIfDeserted(&effects);
  return effects;
}

void StepMachine::OnSums(const FrameResult& result) {
  if (!running() || !result.wanted) return;
  if ((!stages_ || result.admitted) && progress_.summing > 0) --progress_.summing;
  if (result.summed) progress_.summed = true;
}

void StepMachine::CommitIfComplete(absl::Time now, StepEffects* effects) {
  if (!running() || !policy_->Complete(progress_.summed, now)) return;
  Fail(policy_->CheckCommit(), effects);
  effects->commit = running();
  progress_.summed = false;  // act on it only once
}

void StepMachine::CommitOrAssign(absl::Time now, StepEffects* effects) {
  CommitIfComplete(now, effects);
  if (effects->commit) return;
  Assign(now, effects);
  GiveUpIfDeserted(effects);
  Admit(now, effects);
}

StepEffects StepMachine::OnOrphanSummed(const FrameResult& result, absl::Time now) {
  StepEffects effects;
  Fail(result.failure, &effects);
  if (running() && result.wanted && result.input_ended) Complete(&effects);
  OnSums(result);
  CommitIfComplete(now, &effects);
  GiveUpIfDeserted(&effects);
  Admit(now, &effects);
  return effects;
}

StepPolicy::Outcome StepMachine::TellContribution(StepPolicy::Contribution contribution, absl::Time now) {
  contribution.lease = leases_.Find(contribution.session);
  StepPolicy::Outcome outcome = policy_->OnContribution(contribution, now);
  if (contribution.counts && outcome.status.ok()) leases_.Release(contribution.session);
  return outcome;
}

void StepMachine::EndContribution(uint64_t session, const FrameResult& result, absl::Time now, StepEffects* effects) {
  WorkerState& worker = workers_.at(session);
  const StepToken token = *worker.last_token();
  const bool counts = running() && result.wanted;
  const v1::ContributionResult verdict = policy_->Judge(token);
  const absl::Duration took = now - worker.token_time();
  StepPolicy::Contribution contribution{session, worker.name(), token, nullptr, counts, took, absl::nullopt};
  // A contribution that is no longer wanted may be incomplete; if it is complete, it is still compared. If the end of
  // the input cut it short, there is nothing to compare.
  absl::Span<const uint64_t> digests;
  if (result.digests != nullptr) digests = *result.digests;
  if (token.digest && !result.input_ended && (!digests.empty() || counts)) contribution.digests = digests;
  StepPolicy::Outcome outcome;
  if (!result.admitted) outcome = TellContribution(contribution, now);
  effects->status = outcome.status;
  for (std::string& difference : outcome.warnings) {
    effects->events.push_back({RunEvent::kAuditDifference, token.step, worker.name(), std::move(difference)});
  }
  Fail(outcome.failure, effects);
  if (!effects->status.ok()) return;
  admission_.End(session, token.block, counts);
  staging_.End(session);
  v1::ContributionResult worth = worker.any_new() ? v1::CONTRIBUTION_ACCEPTED : verdict;
  if (!worker.any_new() && verdict == v1::CONTRIBUTION_ACCEPTED) {
    worth = stages_ ? v1::CONTRIBUTION_REJECTED : v1::CONTRIBUTION_DUPLICATE;
  }
  if (stages_ && result.input_ended) worth = v1::CONTRIBUTION_NONE;  // there was no contribution
  effects->status = worker.OnContributed(worth);
  if (worth != v1::CONTRIBUTION_NONE) effects->contributed = StepEffects::Contributed{token, worth, took};
}

StepEffects StepMachine::OnSummed(uint64_t session, const FrameResult& result, absl::Time now) {
  StepEffects effects;
  Fail(result.failure, &effects);
  bool ends = running() && result.wanted && result.input_ended;
  OnSums(result);
  WorkerState& worker = workers_.at(session);
  if (result.any_new) worker.MarkNew();
  if (result.leave) {
    Release(session);
    worker.OnLeave();
  } else if (result.end) {
    if (worker.phase() == WorkerState::Phase::kPushing) {
      EndContribution(session, result, now, &effects);
    } else {
      effects.status = worker.OnAsk();
    }
    if (effects.status.ok()) Release(session);
  }
  if (result.input_ended && !result.wanted && running() && stages_) {
    ends = policy_->OnInputEnded(session);
  }
  Update(session, worker);
  if (ends && running()) Complete(&effects);
  CommitIfComplete(now, &effects);
  if (effects.commit) {
    // The contribution counts, with the time it has taken so far, although its end has not arrived.
    if (!result.end && !result.leave && result.wanted) {
      TellContribution({session, worker.name(), *worker.last_token(), nullptr, /*counts=*/true}, now);
    }
  } else {
    Assign(now, &effects);
    GiveUpIfDeserted(&effects);
    Admit(now, &effects);
  }
  if (worker.awaits_token() && state_ == State::kFinished) effects.wake.push_back(session);
  return effects;
}

StepEffects StepMachine::OnCommitted(bool last, absl::Time now) {
  StepEffects effects;
  RestartAdmission(&effects);
  ++step_;
  progress_ = Progress();
  contributors_.clear();
  policy_->OnCommit(step_, leases_);
  if (policy_->traits().commit_voids_tokens) VoidTokens();
  if (last) total_steps_ = std::min(total_steps_, step_);
  if (stages_) {
    ReleaseUnwanted(now, &effects);
    AdmitToStaging(now, &effects);
  }
  if (running()) Proceed(now, &effects);
  return effects;
}

absl::optional<StepMachine::Reply> StepMachine::NextReply(uint64_t session, absl::Time now) {
  WorkerState& worker = workers_.at(session);
  Reply reply;
  reply.takes_values = contributors_.contains(session);
  if (!worker.awaits_token()) {
    if (!reply.takes_values) return absl::nullopt;
    return reply;
  }
  reply.result = worker.result();
  reply.finished = state_ == State::kFinished;
  // A worker's place in the policy's queue changes when it is heard from again or is notified that the run has ended.
  const bool moves = worker.silent() || reply.finished;
  if (worker.silent()) worker.OnHeard(now);  // the worker has finally read the previous reply
  if (reply.finished) {
    worker.OnFinishSent();
  } else if (worker.phase() == WorkerState::Phase::kAssigned) {
    reply.token = worker.last_token();
    reply.takes_values = true;
  }
  if (moves) Update(session, worker);
  if (state_ == State::kFailed) return absl::nullopt;
  return reply;
}

void StepMachine::OnReplySent(uint64_t session, absl::optional<int64_t> values_step) {
  WorkerState& worker = workers_.at(session);
  if (worker.awaits_token()) worker.OnResultSent();
  if (!values_step) return;
  worker.OnTokenSent(*values_step);
  Update(session, worker);
}

StepEffects StepMachine::Stop() {
  StepEffects effects;
  if (running() || state_ == State::kHeld) state_ = State::kStopped;
  RestartAdmission(&effects);
  EndWaits(&effects);
  VoidTokens();
  return effects;
}

StepEffects StepMachine::Finish() {
  state_ = State::kFinished;
  StepEffects effects;
  RestartAdmission(&effects);
  EndWaits(&effects);
  for (const auto& entry : workers_) {
    if (entry.second.awaits_token()) effects.wake.push_back(entry.first);
  }
  return effects;
}

void StepMachine::FillCounters(v1::RunCounters* counters) const {
  counters->set_backup_tokens(backup_tokens_);
  counters->set_contribution_waits(contribution_waits_);
  counters->set_contributions_waiting(static_cast<int64_t>(admission_.num_waiting() + staging_.line().size()));
  stages_ ? counters->set_max_staged_contributions(options_.max_staged)
          : counters->set_max_partial_sums(options_.max_partial_sums);
}

void StepMachine::FillStatus(uint64_t session, absl::Time now, v1::WorkerStatus* status) const {
  const WorkerState& worker = workers_.at(session);
  status->set_silent_seconds(absl::ToDoubleSeconds(now - worker.heard()));
  const TokenLease* const lease = leases_.Find(session);
  if (lease == nullptr) return;
  status->set_step(lease->token.step);
  status->set_first_slot(lease->token.block.first);
  status->set_slot_count(lease->token.block.count);
  status->set_lease_seconds(absl::ToDoubleSeconds(lease->deadline - now));
  status->set_backup(lease->backup);
  if (!lease->token.batch) return;
  status->set_stream(lease->token.batch->stream);
  status->set_position(lease->token.batch->position);
}

}  // namespace lockstep
