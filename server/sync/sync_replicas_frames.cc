// The part of SyncReplicas that handles incoming frames, replies, and the commit of a step.
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/sync/machine/contribution_checker.h"
#include "lockstep/server/sync/shard/staged_contribution.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace {

// The first kLoggedSkips skipped steps are logged, and then every hundredth.
constexpr int64_t kLoggedSkips = 10;

// Returns the end of the error message about `found`, which was contributed to `block` in the update to `step`.
std::string ReplayText(const SyncReplicas::Options& options, int64_t step, const SlotBlock& block,
                       const NonFiniteValue& found) {
  if (options.replay_command.empty() || !found.contributed) return "";
  const bool is_known = found.slot || block.count == 1;
  return absl::StrCat(
      "; ", options.replay_command, " --step=", step, " --slot=", found.slot.value_or(block.first),
      options.replay_program,
      is_known ? " computes it again"
               : absl::StrCat(", or another slot up to ", block.first + block.count - 1, ", computes it again"));
}

// Returns the part of the result that follows from the frame alone.
StepMachine::FrameResult ResultOf(const StepFrame& frame) {
  StepMachine::FrameResult result;
  result.end = frame.end;
  result.leave = frame.leave;
  result.input_ended = frame.end_of_input;
  result.digests = &frame.digests;
  return result;
}

// Returns the result of a frame that is refused, or whose stream was closed. A refused frame does not end the run.
StepMachine::FrameResult OrphanOf(const absl::Status& summed, const StepMachine::FrameResult& result) {
  StepMachine::FrameResult orphan = result;
  if (!summed.ok()) orphan.input_ended = false;
  return orphan;
}

}  // namespace

absl::Status StepConnection::OnFrame(const StepFrame& frame, bool* waits) {
  return owner_->OnFrame(this, frame, waits);
}

bool StepConnection::NextReply(StepReplyFrame* reply) { return owner_->NextReply(this, reply); }

void StepConnection::CountSent(int64_t bytes, WirePath path) { owner_->CountSent(*this, bytes, path); }

void StepConnection::Close() { owner_->Close(this); }

absl::Status SyncReplicas::OnFrame(StepConnection* connection, const StepFrame& frame, bool* waits) {
  Outbox outbox;
  const absl::Status status = Handle(connection, frame, waits, &outbox);
  CarryOut(&outbox);
  return status;
}

absl::Status SyncReplicas::Handle(StepConnection* connection, const StepFrame& frame, bool* waits, Outbox* outbox) {
  StepMachine::FrameStart start;
  std::shared_ptr<StepSums> sums;
  {
    MutexLock lock(&mutex_);
    const absl::Status status = Begin(connection, frame, &start, &sums);
    if (!status.ok()) {
      rates_.OnRejected(connection->session_);
      return status;
    }
  }
  *waits = start.waits;
  if (start.waits) {
    if (start.begins) connection->checker_.Begin(frame.step, frame.block);
    return absl::OkStatus();
  }
  StepMachine::FrameResult result = ResultOf(frame);
  const absl::Status summed = Sum(connection, frame, start.begins, sums.get(), &result);
  if (!stages_ || !frame.end) return Finish(connection, frame, summed, sums, &result, outbox);
  MutexLock lock(&admission_mutex_);
  if (summed.ok() && !frame.end_of_input) AdmitStaged(connection, &result, &sums);
  return Finish(connection, frame, summed, sums, &result, outbox);
}

absl::Status SyncReplicas::Finish(StepConnection* connection, const StepFrame& frame, const absl::Status& summed,
                                  const std::shared_ptr<StepSums>& sums, StepMachine::FrameResult* result,
                                  Outbox* outbox) {
  MutexLock lock(&mutex_);
  if (!stages_ || result->admitted) {
    result->wanted = sums != nullptr && sums == sums_;
    result->summed = result->wanted && sums->complete();
  } else {
    result->wanted = sums != nullptr && !frame.end;
  }
  absl::string_view why = "the input has ended";
  absl::Status non_finite;
  if (options_.non_finite == Options::NonFinite::kEnds && !result->failure.ok()) {
    non_finite = std::exchange(result->failure, absl::OkStatus());
    why = non_finite.message();
    const int64_t step = (stages_ ? shard_->step() : frame.step) + 1;
    outbox->events.push_back({RunEvent::kEndsNonFinite, step, connection->name_, "", non_finite});
    result->input_ended = true;
  }
  return End(connection, frame, summed, *result, why, outbox);
}

absl::Status SyncReplicas::Begin(StepConnection* connection, const StepFrame& frame, StepMachine::FrameStart* start,
                                 std::shared_ptr<StepSums>* sums) {
  connection->AssertHeld();
  if (connection->closed_) return absl::AbortedError("the stream is closed");
  const bool resumed = std::exchange(connection->waits_, false);
  if (!resumed) rates_.OnReceived(connection->session_, frame.encoded_bytes, frame.path);
  ASSIGN_OR_RETURN(*start, machine_.OnFrame(connection->session_, frame, options_.clock->Now(), resumed));
  connection->waits_ = start->waits;
  if (stages_) {
    const bool begins = start->begins || std::exchange(connection->begins_, false);
    if (begins || !(start->wanted || start->waits)) connection->staged_.reset();
    if (begins && start->wanted) connection->staged_ = std::make_shared<StagedContribution>();
    connection->begins_ = begins && start->waits;
    *sums = connection->staged_;
  } else if (start->wanted) {
    *sums = sums_;
  }
  return absl::OkStatus();
}

absl::Status SyncReplicas::CheckFinite(const std::string& worker, int64_t step, const SlotBlock& block,
                                       const StepSums& sums) const {
  const auto found = sums.FindNonFinite(block);
  if (!found) return absl::OkStatus();
  std::string from;
  if (found->contributed) {
    from = absl::StrCat(" (", found->slot ? absl::StrCat("slot ", *found->slot, ", computed") : "sent", " by ", worker,
                        ")");
  }
  return absl::InvalidArgumentError(absl::StrCat("the ", found->what, " of step ", step + 1, " is not finite", from,
                                                 ReplayText(options_, step + 1, block, *found)));
}

void SyncReplicas::AdmitStaged(StepConnection* connection, StepMachine::FrameResult* result,
                               std::shared_ptr<StepSums>* sums) {
  std::shared_ptr<StagedContribution> staged;
  absl::optional<int64_t> slot;
  int64_t step = 0;
  {
    MutexLock lock(&mutex_);
    connection->AssertHeld();
    staged = std::exchange(connection->staged_, nullptr);
    if (staged == nullptr || connection->closed_) return;
    slot = machine_.OnStaged(connection->session_, options_.clock->Now());
    if (!slot) return;
    *sums = sums_;
    step = shard_->step();
    if (options_.arrivals != nullptr) {
      v1::Arrival arrival = connection->arrival_;
      arrival.set_step(step + 1);
      arrival.set_slot(*slot);
      options_.arrivals->Append(arrival);
    }
  }
  result->admitted = true;
  result->any_new = staged->AddTo(*slot, sums->get());
  if (options_.non_finite == Options::NonFinite::kSkipsStep) return;
  result->failure = CheckFinite(connection->name_, step, {*slot, 1}, **sums);
}

absl::Status SyncReplicas::Sum(StepConnection* connection, const StepFrame& frame, bool begins, StepSums* sums,
                               StepMachine::FrameResult* result) const {
  if (frame.block.count == 0) return CheckEmpty(frame);
  ContributionChecker* const checker = &connection->checker_;
  if (begins) checker->Begin(frame.step, frame.block);
  RETURN_IF_ERROR(checker->CheckFrame(frame, /*wanted=*/sums != nullptr));
  if (sums == nullptr) return absl::OkStatus();  // the step is over, so nothing of the frame is needed
  const bool checks = options_.non_finite != Options::NonFinite::kSkipsStep;
  if (!frame.reports.empty() && checker->reported()) {
    sums->AddReports(checker->reports());
    checker->DropReports();
    // This fails the run, not the stream. None of the block's gradients is accepted, so the step cannot complete.
    if (checks) result->failure = CheckFinite(connection->name_, frame.step, frame.block, *sums);
    if (!result->failure.ok()) return absl::OkStatus();
  }
  for (const StepPiece& piece : frame.gradients) {
    if (sums->AddPiece(frame.block, piece)) result->any_new = true;
  }
  if (checks && !frame.gradients.empty())
    result->failure = CheckFinite(connection->name_, frame.step, frame.block, *sums);
  const bool whole = frame.end && !frame.end_of_input && result->failure.ok();
  return whole ? checker->CheckWhole() : absl::OkStatus();
}

absl::Status SyncReplicas::End(StepConnection* connection, const StepFrame& frame, const absl::Status& summed,
                               const StepMachine::FrameResult& result, absl::string_view why, Outbox* outbox) {
  connection->AssertHeld();
  const absl::Time now = options_.clock->Now();
  const uint64_t session = connection->session_;
  const bool orphan = connection->closed_ || !summed.ok();
  const StepEffects effects =
      orphan ? machine_.OnOrphanSummed(OrphanOf(summed, result), now) : machine_.OnSummed(session, result, now);
  absl::Status status = orphan ? summed : effects.status;
  if (orphan && status.ok()) status = absl::AbortedError("the stream was closed");
  if (effects.complete && result.input_ended) end_reason_ = std::string(why);
  if (!status.ok() && !connection->closed_) rates_.OnRejected(session);
  if (effects.contributed) {
    rates_.OnContributed(session, effects.contributed->result, effects.contributed->took);
    times_.OnContributed(session, effects.contributed->token, effects.contributed->took, frame.times, now);
    connection->delivery_->OnContributed(effects.contributed->token);
  }
  if (status.ok() && frame.end) connection->delivery_->Release();
  TakeAndCommit(effects, now, outbox);
  WakeForEarlyValues(session, outbox);
  return status;
}

void SyncReplicas::TakeAndCommit(const StepEffects& effects, absl::Time now, Outbox* outbox) {
  Take(effects, outbox);
  if (effects.commit) Commit(now, outbox);
}

void SyncReplicas::NoteSkipped(const NonFiniteValue& why, Outbox* outbox) {
  const int64_t count = rates_.OnSkipped();
  if (count > kLoggedSkips && count % 100 != 0) return;
  RunEvent skipped{RunEvent::kSkipped, shard_->step()};
  skipped.text = absl::StrCat(why.what, why.slot ? absl::StrCat(" of slot ", *why.slot) : "");
  skipped.count = count;
  outbox->events.push_back(std::move(skipped));
}

void SyncReplicas::Commit(absl::Time now, Outbox* outbox) {
  StepShard::Committed committed = shard_->Commit();
  sums_.reset();
  CommittedStep& told = outbox->committed.emplace();
  ++untold_.commits;
  told.time = now;
  told.commit.set_step(shard_->step());
  told.commit.set_mean_loss(committed.mean_loss);
  told.commit.set_learning_rate(shard_->learning_rate());
  told.commit.set_skipped(committed.skipped.has_value());
  told.summaries = std::move(committed.summaries);
  told.metrics = std::move(committed.metrics);
  told.norms = committed.norms;
  if (options_.log != nullptr) options_.log->Append(told.commit);
  rates_.OnCommitted(committed.mean_loss);
  if (committed.skipped) NoteSkipped(*committed.skipped, outbox);
  rates_.MoveMarks(shard_->step(), now);
  times_.OnCommitted(shard_->step(), now);
  StepEffects effects = machine_.OnCommitted(committed.stop, now);
  if (committed.stop) end_reason_ = "the report of a slot asked for it";
  told.last = effects.complete;
  const bool begins = std::exchange(effects.begin, false);
  Take(effects, outbox);
  CloseExcessPins(now, outbox);  // before the next step allocates memory
  if (begins) BeginStep();
}

void SyncReplicas::CloseExcessPins(absl::Time now, Outbox* outbox) {
  for (const PinHolder& holder : pins_.FindExcess(shard_->step())) {
    auto stream = holder.stream.lock();
    if (stream == nullptr) continue;  // the stream is over, and what gRPC is writing goes with its connection
    const absl::Status why = absl::AbortedError("the values of a step were kept for too many steps");
    const auto it = connections_.find(holder.session);
    if (it == connections_.end() || !it->second->HasListener(stream)) {
      // The stream has ended and waits for the worker to read.
      outbox->endings.push_back({std::move(stream), why, /*at_once=*/true});
      continue;
    }
    const StepConnection& connection = *it->second;
    connection.AssertHeld();
    // A worker whose contribution may still count needs the values that it computes with.
    if (!machine_.traits().commit_voids_tokens && machine_.holds_lease(holder.session)) continue;
    outbox->events.push_back({RunEvent::kOldValues, shard_->step(), connection.name_});
    // A streamed version is kept alive by replies that the worker does not read, so the stream must end at once. A
    // worker that maps the version still reads its replies.
    const bool at_once = connection.delivery_->streams();
    Remove(holder.session, why, at_once, outbox);
    Take(machine_.OnDisconnected(holder.session, now), outbox);
  }
}

void SyncReplicas::Take(const StepEffects& effects, Outbox* outbox) {
  if (effects.snapshot) outbox->snapshot = TakeSnapshotLocked();
  if (effects.begin) {
    BeginStep();
    times_.OnBegun(options_.clock->Now());
  }
  if (effects.give_up) {
    sums_.reset();
    shard_->GiveUp();
  }
  if (effects.complete) {
    outbox->last_events.push_back({RunEvent::kFinished, shard_->step()});
    DropSums();  // of a step that the input cannot complete
  }
  outbox->events.insert(outbox->events.end(), effects.events.begin(), effects.events.end());
  for (const uint64_t session : effects.unstage) {
    StepConnection& connection = *connections_.at(session);
    connection.AssertHeld();
    connection.staged_.reset();  // a frame that is being copied into it keeps it alive until then
  }
  for (const StepEffects::Close& close : effects.close) Remove(close.session, close.why, close.at_once, outbox);
  for (const uint64_t session : effects.wake) {
    const StepConnection& connection = *connections_.at(session);
    connection.AssertHeld();
    outbox->ready.push_back(connection.listener_);
  }
  for (const uint64_t session : effects.resume) {
    const auto it = connections_.find(session);
    if (it == connections_.end()) continue;  // it has just been closed
    const StepConnection& connection = *it->second;
    connection.AssertHeld();
    outbox->resumed.push_back(connection.listener_);
  }
  if (!effects.failure.ok())
    outbox->last_events.push_back({RunEvent::kFailed, shard_->step(), "", "", effects.failure});
  if (!machine_.running()) changes_.not_running.SignalAll();
}

void SyncReplicas::Remove(uint64_t session, const absl::Status& why, bool at_once, Outbox* outbox) {
  const auto it = connections_.find(session);
  if (it == connections_.end()) return;
  StepConnection& connection = *it->second;
  connection.AssertHeld();
  connection.closed_ = true;
  connection.delivery_->OnClosed();
  rates_.RemoveWorker(session);
  times_.RemoveWorker(session);
  if (!why.ok()) outbox->endings.push_back({std::move(connection.listener_), why, at_once});
  connection.listener_.reset();
  connections_.erase(it);
}

void SyncReplicas::WakeIfEarlyValues(uint64_t session, Outbox* outbox) {
  const auto it = connections_.find(session);
  if (it == connections_.end()) return;
  const StepConnection& connection = *it->second;
  connection.AssertHeld();
  if (connection.delivery_->HasEarlyValues()) outbox->ready.push_back(connection.listener_);
}

void SyncReplicas::WakeForEarlyValues(uint64_t frame_session, Outbox* outbox) {
  const size_t finished = sums_ == nullptr ? 0 : sums_->num_finished_segments();
  if (finished != announced_segments_) {
    announced_segments_ = finished;
    for (const uint64_t session : machine_.contributors()) WakeIfEarlyValues(session, outbox);
  } else if (machine_.contributors().contains(frame_session)) {
    WakeIfEarlyValues(frame_session, outbox);
  }
}

void SyncReplicas::CarryOut(Outbox* outbox) {
  for (const RunEvent& event : outbox->events) options_.events->OnEvent(event);
  for (const Outbox::Ending& ending : outbox->endings) {
    if (ending.listener != nullptr) ending.listener->OnClosed(ending.why, ending.at_once);
  }
  for (const auto& listener : outbox->ready) {
    if (listener != nullptr) listener->OnReplyReady();
  }
  for (const auto& listener : outbox->resumed) {
    if (listener != nullptr) listener->OnResume();
  }
  if (outbox->snapshot) options_.events->OnSnapshot(*std::move(outbox->snapshot));
  if (outbox->committed) {
    options_.events->OnCommitted(*outbox->committed);
    MutexLock lock(&mutex_);
    if (--untold_.commits == 0) untold_.none.SignalAll();
  }
  for (const RunEvent& event : outbox->last_events) options_.events->OnEvent(event);
}

bool SyncReplicas::AwaitCommitsTold(absl::Time deadline) {
  MutexLock lock(&mutex_);
  while (untold_.commits > 0) {
    if (options_.clock->WaitUntil(&untold_.none, &mutex_, deadline)) return untold_.commits == 0;
  }
  return true;
}

bool SyncReplicas::NextReply(StepConnection* connection, StepReplyFrame* reply) {
  MutexLock lock(&mutex_);
  connection->AssertHeld();
  if (connection->closed_) return false;
  const auto next = machine_.NextReply(connection->session_, options_.clock->Now());
  if (!next) return false;
  reply->result = next->result;
  reply->finished = next->finished;
  if (next->finished) {
    reply->finish_message = finish_message_;
    return true;
  }
  absl::optional<int64_t> values_step;
  if (next->takes_values) values_step = connection->delivery_->Fill(next->token, reply);
  if (!next->token) values_step.reset();
  if (values_step) {
    v1::Token& token = reply->token.emplace();
    token.set_step(next->token->step);
    token.set_first_slot(next->token->block.first);
    token.set_slot_count(next->token->block.count);
    token.set_digest(next->token->digest);
    token.set_extra(next->token->extra);
    if (*values_step != next->token->step) token.set_values_step(*values_step);
    if (next->token->batch) {
      token.set_stream(next->token->batch->stream);
      token.set_position(next->token->batch->position);
    }
    connection->delivery_->Attach(*next->token, reply);
    if (connection->changes_ < changes_.for_workers.changes()) {
      reply->settings = changes_.for_workers;
      connection->changes_ = changes_.for_workers.changes();
    }
    if (options_.arrivals != nullptr) NoteToken(token, *values_step, connection);
  }
  if (!values_step && reply->values.empty() && reply->estimates.empty()) {
    Clear(reply);
    return false;
  }
  machine_.OnReplySent(connection->session_, values_step);
  return true;
}

void SyncReplicas::NoteToken(const v1::Token& token, int64_t values_step, StepConnection* connection) const {
  connection->AssertHeld();
  v1::Arrival* const arrival = &connection->arrival_;
  arrival->set_stream(token.stream());
  arrival->set_position(token.position());
  arrival->set_values_step(values_step);
  arrival->set_assignments(options_.log != nullptr ? options_.log->assignments() : 0);
  arrival->set_changes(connection->changes_);
}

void SyncReplicas::CountSent(const StepConnection& connection, int64_t bytes, WirePath path) {
  MutexLock lock(&mutex_);
  rates_.OnSent(connection.session_, bytes, path);
}

}  // namespace lockstep
