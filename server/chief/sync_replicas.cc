#include "server/chief/sync_replicas.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "glog/logging.h"
#include "server/optimizer/learning_rate.h"

namespace lockstep {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(3);
// A worker that takes no reply for so long loses its stream: the values that wait for it take memory.
constexpr absl::Duration kUnreadLimit = absl::Seconds(60);
// Kept for workers that hang, of the values of steps that are over: one may hang for long, another be only slow.
constexpr int64_t kMinOldVersions = 2;

// How many versions `bytes` are enough for.
size_t MaxOldVersions(const VariableStore& store, int64_t bytes, int64_t slots) {
  const Compression& compression = store.compression();
  int64_t element_bytes = sizeof(float);
  if (compression.values != DT_FLOAT) element_bytes += sizeof(uint16_t);
  if (compression.top_k > 0) element_bytes += slots * static_cast<int64_t>(sizeof(float));
  const int64_t version_bytes = std::max<int64_t>(1, store.layout().flat_elements() * element_bytes);
  return static_cast<size_t>(std::max(kMinOldVersions, bytes / version_bytes));
}

}  // namespace

absl::Status StepConnection::OnFrame(const StepFrame& frame) { return owner_->OnFrame(this, frame); }
bool StepConnection::NextReply(StepReplyFrame* reply) { return owner_->NextReply(this, reply); }
void StepConnection::Close() { owner_->Close(this); }

void StepConnection::CountSent(int64_t bytes) {
  MutexLock lock(&owner_->mutex_);
  stats_.set_bytes_sent(stats_.bytes_sent() + bytes);
  owner_->bytes_sent_ += bytes;
}

std::shared_ptr<const VariableStore::Estimates> StepConnection::estimates() const {
  MutexLock lock(&owner_->mutex_);
  return token_estimates_;
}

std::shared_ptr<const PublishedValues> StepConnection::values() const {
  MutexLock lock(&owner_->mutex_);
  return token_values_;
}

SyncReplicas::SyncReplicas(Options options, VariableStore* store)
    : options_(std::move(options)),
      layout_(store->layout()),
      store_(store),
      tokens_([this] {
        TokenQueue::Options tokens;
        tokens.slots = options_.slots;
        tokens.lease = options_.lease;
        return tokens;
      }()),
      pins_(MaxOldVersions(*store, options_.old_version_bytes, options_.slots)) {
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < layout_.segments().size(); ++i) segment_order_.push_back(static_cast<int>(i));
  for (Mark& mark : marks_) mark = NewMark(options_.clock->Now());
  if (store_->step() < options_.total_steps) StartStep();
}

SyncReplicas::~SyncReplicas() {
  MutexLock lock(&mutex_);
  CHECK(connections_.empty()) << connections_.size() << " Step streams outlive their chief";
}

void SyncReplicas::StartStep() {
  tokens_.StartStep();
  learning_rate_ = LearningRateAt(options_.learning_rate, store_->step());
  store_->BeginUpdate(learning_rate_);
  current_ = std::make_shared<ContributionSet>(store_, options_.slots);
}

std::shared_ptr<StepConnection> SyncReplicas::Connect(uint64_t session, std::string name, ValuePath value_path,
                                                      std::shared_ptr<StepListener> listener) {
  std::shared_ptr<StepConnection> connection(new StepConnection(this, session, name, &layout_, value_path));
  connection->listener_ = std::move(listener);
  connection->stats_.set_name(std::move(name));
  connection->stats_.set_session_id(ShortSessionId(session));
  connection->last_heard_ = options_.clock->Now();
  connection->frame_limits_ = FrameLimits();
  std::shared_ptr<StepListener> replaced;
  {
    MutexLock lock(&mutex_);
    const auto it = connections_.find(session);
    if (it != connections_.end()) replaced = Remove(std::shared_ptr<StepConnection>(it->second).get());
    connections_[session] = connection;
  }
  if (replaced != nullptr) {
    replaced->OnClosed(
        absl::AbortedError(absl::StrCat("session ", ShortSessionId(session), " has opened another Step stream")),
        /*at_once=*/false);
  }
  return connection;
}

StepFrameLimits SyncReplicas::FrameLimits() const {
  const auto ops = static_cast<int64_t>(layout_.update_ops().size());
  StepFrameLimits limits;
  limits.reports = options_.slots;
  limits.pieces = static_cast<int64_t>(layout_.segments().size()) * (sparse() ? options_.slots : 1);
  // The objects of a report and of an update value have some 200 bytes each.
  limits.bytes += options_.slots * (200 * (1 + ops) + UpdateBytes(layout_));
  return limits;
}

absl::Status SyncReplicas::OnFrame(StepConnection* connection, const StepFrame& frame) {
  std::shared_ptr<ContributionSet> target;
  {
    MutexLock lock(&mutex_);
    const absl::Status status = BeginFrame(connection, frame, &target);
    if (!status.ok()) {
      ++rejected_;
      return status;
    }
  }
  absl::Status failure;
  absl::Status status = TakeContribution(connection, frame, target.get(), &failure);
  absl::optional<Committed> committed;
  absl::optional<VariableStore::Snapshot> snapshot;
  Listeners listeners;
  Endings pinning;
  {
    MutexLock lock(&mutex_);
    // Several workers may meet the same loss.
    if (failed_) failure = absl::OkStatus();
    failed_ = failed_ || !failure.ok();
    const bool complete = target != nullptr && target == current_ && target->complete();
    if (complete) {
      // Its time counts; the commit voids all tokens.
      tokens_.Cover(frame.block, connection->session_, options_.clock->Now());
      committed = Commit();
      if (options_.snapshot_every_steps > 0 && committed->step % options_.snapshot_every_steps == 0) {
        snapshot = store_->TakeSnapshot();
      }
    }
    if (status.ok()) status = EndFrame(connection, frame);
    if (!status.ok()) ++rejected_;
    if (complete) pinning = RemovePinning();  // before the next step takes memory
    if (complete && store_->step() < options_.total_steps) StartStep();
    AssignTokens();
    listeners = Waiting();
  }
  End(pinning);
  Wake(listeners);
  if (snapshot) options_.on_snapshot(*std::move(snapshot));
  if (committed) options_.on_commit(*committed);
  if (!failure.ok()) options_.on_failure(std::move(failure));
  return status;
}

absl::Status SyncReplicas::BeginFrame(StepConnection* connection, const StepFrame& frame,
                                      std::shared_ptr<ContributionSet>* target) {
  if (connection->closed_) return absl::AbortedError("the stream is closed");
  if (frame.epoch != options_.epoch) {
    return absl::AbortedError(absl::StrCat("epoch ", frame.epoch, " is over, the chief's is ", options_.epoch));
  }
  if (frame.session_id != connection->session_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of session ", frame.session_id, " on the stream of session ", connection->session_));
  }
  connection->last_heard_ = options_.clock->Now();
  connection->stats_.set_bytes_received(connection->stats_.bytes_received() + frame.encoded_bytes);
  bytes_received_ += frame.encoded_bytes;
  connection->silent_ = false;
  if (connection->first_frame_) {
    connection->first_frame_ = false;
    connection->not_before_step_ = std::min(frame.startup_delay_steps, options_.total_steps);
  }
  if (frame.block.count == 0) {
    if (!frame.gradients.empty() || !frame.reports.empty()) {
      return absl::InvalidArgumentError("gradients or reports without a block of slots");
    }
    if (connection->incoming_.begun()) return absl::InvalidArgumentError("the contribution before was not ended");
    return absl::OkStatus();
  }
  IncomingContribution& incoming = connection->incoming_;
  if (!incoming.begun()) {
    const auto& token = connection->last_token_;
    if (!token || token->step() != frame.step || token->first_slot() != frame.block.first ||
        token->slot_count() != frame.block.count) {
      return absl::FailedPreconditionError(
          absl::StrCat("a contribution to ", DescribeBlock(frame.step, frame.block),
                       " without a token for it; the session's last token is ",
                       token ? DescribeBlock(token->step(), {token->first_slot(), token->slot_count()}) : "none"));
    }
    connection->last_token_.reset();
    incoming.Begin(frame.step, frame.block, sparse());
  } else {
    RETURN_IF_ERROR(incoming.CheckSame(frame.step, frame.block));
  }
  tokens_.Renew(connection->session_, connection->last_heard_);
  connection->pushing_ = true;
  connection->pushing_step_ = frame.step;
  if (frame.step == store_->step() && !failed_) *target = current_;
  return absl::OkStatus();
}

absl::Status SyncReplicas::TakeContribution(StepConnection* connection, const StepFrame& frame, ContributionSet* target,
                                            absl::Status* failure) {
  IncomingContribution& incoming = connection->incoming_;
  if (!frame.reports.empty()) {
    RETURN_IF_ERROR(incoming.AddReports(frame.reports, /*keep=*/target != nullptr));
    if (incoming.reported() && target != nullptr) {
      RETURN_IF_ERROR(target->AddReports(frame.block, incoming.TakeReports()));
      // The run's failure, not the stream's. None of the block's gradients is taken, so the step cannot complete.
      *failure = CheckFinite(*connection, frame, *target);
      if (!failure->ok()) return absl::OkStatus();
    }
  }
  for (const StepPiece& piece : frame.gradients) {
    RETURN_IF_ERROR(incoming.CheckReported());
    if (target == nullptr) continue;  // the step is over; nothing of it is wanted
    RETURN_IF_ERROR(CheckPiece(*connection, frame, piece, *target));
    RETURN_IF_ERROR(incoming.MarkPiece(piece));
    if (target->AddPiece(frame.block, piece)) incoming.MarkNew();
  }
  if (target != nullptr && !frame.gradients.empty()) *failure = CheckFinite(*connection, frame, *target);
  return absl::OkStatus();
}

absl::Status SyncReplicas::CheckPiece(const StepConnection& connection, const StepFrame& frame, const StepPiece& piece,
                                      const ContributionSet& target) const {
  if (piece.sparse != sparse()) {
    return absl::InvalidArgumentError(absl::StrCat("a gradient is sent ", piece.sparse ? "sparse" : "whole",
                                                   "; the run's travel ", sparse() ? "sparse" : "whole"));
  }
  RETURN_IF_ERROR(sparse() ? target.CheckSparsePiece(frame.block, piece) : target.CheckPiece(piece));
  return CheckType(connection, piece);
}

absl::Status SyncReplicas::CheckType(const StepConnection& connection, const StepPiece& piece) const {
  const bool in_process = connection.value_path_ == ValuePath::kHandedOver;
  const DataType type = in_process ? DT_FLOAT : store_->compression().gradients;
  if (piece.content.type() == type) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the gradient of ", layout_.variables()[piece.variable].spec.name(),
                                                 " is sent as ", NameOf(piece.content.type()),
                                                 "; the run's gradients travel as ", NameOf(type)));
}

absl::Status SyncReplicas::CheckFinite(const StepConnection& connection, const StepFrame& frame,
                                       const ContributionSet& target) {
  const auto found = target.FindNonFinite(frame.block);
  if (!found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", found->what, " of step ", frame.step, " is not finite (",
      found->slot ? absl::StrCat("slot ", *found->slot, ", computed") : "sent", " by ", connection.name_, ")"));
}

absl::Status SyncReplicas::EndFrame(StepConnection* connection, const StepFrame& frame) {
  if (frame.leave) {
    tokens_.Release(connection->session_);
    connection->awaiting_ = false;
    connection->finish_sent_ = true;
    return absl::OkStatus();
  }
  if (!frame.end) return absl::OkStatus();
  if (connection->awaiting_) return absl::InvalidArgumentError("a token was asked for twice");
  IncomingContribution& incoming = connection->incoming_;
  const absl::Time now = options_.clock->Now();
  if (incoming.begun()) {
    incoming.End();
    connection->pushing_ = false;
    // A step that went on without this contribution, failed or was stopped has dropped some of its pieces uncounted.
    const bool current = current_ != nullptr && frame.step == store_->step() && !failed_;
    if (current) RETURN_IF_ERROR(incoming.CheckWhole());
    if (current) tokens_.Cover(frame.block, connection->session_, now);
    connection->estimates_.Advance(frame.step, frame.block);
    connection->fate_ = incoming.any_new() ? ACCEPTED : DUPLICATE;
    if (incoming.any_new()) {
      ++accepted_;
      connection->stats_.set_accepted(connection->stats_.accepted() + 1);
    } else {
      ++duplicate_;
      connection->stats_.set_duplicate(connection->stats_.duplicate() + 1);
    }
    connection->stats_.set_last_step_seconds(absl::ToDoubleSeconds(now - connection->last_token_time_));
  }
  tokens_.Release(connection->session_);
  connection->awaiting_ = true;
  connection->token_values_.reset();  // kept, they would be a third version during the next step
  return absl::OkStatus();
}

SyncReplicas::Committed SyncReplicas::Commit() {
  const auto updates = current_->TakeUpdates();
  last_loss_ = current_->MeanLoss();
  segment_order_ = current_->finished_segments();
  for (size_t i = 0; i < layout_.segments().size(); ++i) {
    if (!layout_.variables()[layout_.segments()[i].variable].spec.trainable())
      segment_order_.push_back(static_cast<int>(i));
  }
  store_->CommitUpdate(updates);
  current_.reset();
  // Tokens of the step that is over are void, also those that were not sent yet.
  tokens_.StartStep();
  for (auto& entry : connections_) entry.second->token_.reset();
  UpdateRate(options_.clock->Now());
  return {store_->step(), *last_loss_};
}

bool SyncReplicas::HasStarted(const StepConnection& connection) const {
  return !connection.first_frame_ && connection.not_before_step_ <= store_->step();
}

void SyncReplicas::StartOneIfAllAreDelayed() {
  StepConnection* first = nullptr;
  for (const auto& entry : connections_) {
    if (HasStarted(*entry.second)) return;
    if (first == nullptr && entry.second->awaiting_) first = entry.second.get();
  }
  if (first != nullptr) first->not_before_step_ = store_->step();
}

int64_t SyncReplicas::CountWorkers(bool silent) const {
  const absl::Time now = options_.clock->Now();
  // A frozen worker, and one that goes, do not take part.
  return std::count_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
    const StepConnection& connection = *entry.second;
    mutex_.AssertHeld();
    return connection.silent_ == silent && HasStarted(connection) && !connection.finish_sent_ &&
           (connection.awaiting_ || now - connection.last_heard_ < options_.lease);
  });
}

void SyncReplicas::AssignTokens() {
  if (current_ == nullptr || finished_ || failed_) return;
  StartOneIfAllAreDelayed();
  const absl::Time now = options_.clock->Now();
  if (!tokens_.AnythingDue(now)) return;  // as after most frames
  // One that does not take its tokens gets another only when there is nobody else.
  int64_t workers = CountWorkers(/*silent=*/false);
  const bool silent = workers == 0;
  if (silent) workers = CountWorkers(/*silent=*/true);
  // First those that took part in the step before: they have the values already, or are being sent them.
  for (const bool took_part : {true, false}) {
    for (auto& entry : connections_) {
      StepConnection& connection = *entry.second;
      if ((connection.pushing_step_ >= store_->step() - 1) != took_part) continue;
      if (!connection.awaiting_ || connection.token_ || !HasStarted(connection)) continue;
      if (connection.silent_ && !silent) continue;
      const auto block = tokens_.Take(connection.session_, workers, now, connection.last_block_);
      if (block) Assign(*block, now, &connection);
    }
  }
}

void SyncReplicas::Assign(const SlotBlock& block, absl::Time now, StepConnection* connection) {
  connection->last_block_ = block;
  Token token;
  token.set_step(store_->step());
  token.set_first_slot(block.first);
  token.set_slot_count(block.count);
  connection->token_ = token;
  connection->last_token_ = token;
  connection->last_token_time_ = now;
}

bool SyncReplicas::NextReply(StepConnection* connection, StepReplyFrame* reply) {
  MutexLock lock(&mutex_);
  if (connection->closed_ || connection->finish_sent_) return false;
  *reply = StepReplyFrame();
  const bool pushing_current = connection->pushing_ && connection->pushing_step_ == store_->step();
  const bool streams = StreamsValues(*connection);
  if (!connection->awaiting_ && !(streams && pushing_current)) return false;
  if (connection->awaiting_ && connection->silent_) {  // the reply before was taken at last
    connection->silent_ = false;
    connection->last_heard_ = options_.clock->Now();
  }
  reply->fate = connection->awaiting_ ? connection->fate_ : FATE_NONE;
  if (connection->awaiting_ && (finished_ || failed_)) {
    if (!finished_) return false;
    reply->finished = true;
    reply->finish_message = finish_message_;
    connection->finish_sent_ = true;
    return true;
  }
  if (streams) FeedValues(connection, reply);
  const bool has_values = !streams || connection->feed_.holds(store_->step());
  if (connection->awaiting_ && connection->token_ && has_values && FeedEstimates(connection, reply)) {
    GiveToken(connection, reply);
  }
  const bool any = reply->token.has_value() || !reply->values.empty() || !reply->estimates.empty();
  if (any && reply->fate != FATE_NONE) connection->fate_ = FATE_NONE;
  return any;
}

void SyncReplicas::GiveToken(StepConnection* connection, StepReplyFrame* reply) {
  reply->token = connection->token_;
  connection->token_.reset();
  connection->awaiting_ = false;
  if (StreamsValues(*connection)) return;  // the worker has them in its own memory
  connection->token_values_ = store_->published();
  connection->token_estimates_ = store_->estimates();
  if (connection->value_path_ != ValuePath::kShared) return;
  reply->values_memory = *store_->values()->handle();
  auto& values = connection->token_values_;
  const PublishedValues* const pinned = values.get();
  values = {pins_.Pin(store_->step(), connection->session_, std::move(values)), pinned};
}

bool SyncReplicas::StreamsValues(const StepConnection& connection) const {
  return connection.value_path_ == ValuePath::kStreamed ||
         (connection.value_path_ == ValuePath::kShared && store_->values()->handle() == nullptr);
}

bool SyncReplicas::FeedEstimates(StepConnection* connection, StepReplyFrame* reply) {
  if (connection->value_path_ != ValuePath::kStreamed || !sparse()) return true;
  const Token& token = *connection->token_;
  const bool all = connection->estimates_.Feed(*store_, {token.first_slot(), token.slot_count()}, reply);
  if (reply->estimates_owner != nullptr) {
    reply->estimates_owner = pins_.Pin(store_->step(), connection->session_, std::move(reply->estimates_owner));
  }
  return all;
}

void SyncReplicas::FeedValues(StepConnection* connection, StepReplyFrame* reply) {
  const int64_t step = store_->step();
  // One that waits while others compute may never need what it would be sent.
  if (!connection->token_ && connection->pushing_step_ != step) return;
  if (connection->feed_.Advance(step, MayRunAhead(*connection)) == step) {
    connection->feed_.Fill(segment_order_, store_->published(), reply);
  } else if (current_ != nullptr) {
    connection->feed_.Fill(current_->finished_segments(), store_->next_published(), reply);
  }
  if (reply->values.empty()) return;
  reply->values_owner = pins_.Pin(reply->values_step, connection->session_, std::move(reply->values_owner));
}

bool SyncReplicas::MayRunAhead(const StepConnection& connection) const {
  return !connection.token_ && current_ != nullptr && current_->has_applied_segments();
}

void SyncReplicas::Heartbeat(uint64_t session) {
  MutexLock lock(&mutex_);
  const absl::Time now = options_.clock->Now();
  tokens_.Renew(session, now);
  const auto it = connections_.find(session);
  if (it == connections_.end()) return;
  it->second->last_heard_ = now;
  it->second->silent_ = false;
}

SyncReplicas::Endings SyncReplicas::RemoveUnread() {
  const absl::Time now = options_.clock->Now();
  std::vector<std::shared_ptr<StepConnection>> unread;
  for (const auto& entry : connections_) {
    const StepConnection& connection = *entry.second;
    // A token that is still here when its lease has ended waits behind a reply that the worker does not take.
    const bool stuck = connection.silent_ && connection.awaiting_;
    if (stuck && now - connection.last_heard_ >= kUnreadLimit) unread.push_back(entry.second);
  }
  Endings endings;
  for (const auto& connection : unread) {
    LOG(WARNING) << connection->name_ << " has not read its replies for " << absl::FormatDuration(kUnreadLimit)
                 << ": its stream is ended";
    auto why = absl::AbortedError(absl::StrCat("no reply was read for ", absl::FormatDuration(kUnreadLimit)));
    endings.push_back({Remove(connection.get()), std::move(why), /*at_once=*/true});
  }
  return endings;
}

SyncReplicas::Endings SyncReplicas::RemovePinning() {
  Endings endings;
  for (const uint64_t session : pins_.FindExcess(store_->step())) {
    const auto it = connections_.find(session);
    if (it == connections_.end()) continue;
    const std::shared_ptr<StepConnection> connection = it->second;
    LOG(WARNING) << connection->name_ << " still reads the values of a step that was over some steps before step "
                 << store_->step() << ", as others do of later ones: its stream is ended";
    // One that reads the chief's memory takes its replies.
    endings.push_back({Remove(connection.get()),
                       absl::AbortedError("the values of a step were kept for too many steps"),
                       /*at_once=*/StreamsValues(*connection)});
  }
  return endings;
}

void SyncReplicas::End(const Endings& endings) {
  for (const Ending& ending : endings) {
    if (ending.listener != nullptr) ending.listener->OnClosed(ending.why, ending.at_once);
  }
}

void SyncReplicas::Tick() {
  Endings unread;
  Listeners listeners;
  {
    MutexLock lock(&mutex_);
    const absl::Time now = options_.clock->Now();
    UpdateRate(now);
    for (const TokenQueue::Lease& lease : tokens_.Expire(now)) {
      const auto it = connections_.find(lease.session);
      if (it == connections_.end()) continue;
      LOG(WARNING) << it->second->name_ << " was silent for " << absl::FormatDuration(options_.lease) << ": "
                   << DescribeBlock(store_->step(), lease.block) << " go to another worker";
      it->second->token_.reset();
      it->second->silent_ = true;
    }
    unread = RemoveUnread();
    AssignTokens();
    listeners = Waiting();
  }
  End(unread);
  Wake(listeners);
}

void SyncReplicas::Close(StepConnection* connection) {
  bool idle = false;
  Listeners listeners;
  {
    MutexLock lock(&mutex_);
    if (connection->closed_) return;
    Remove(connection);
    idle = connections_.empty();
    AssignTokens();
    listeners = Waiting();
  }
  Wake(listeners);
  if (idle && options_.on_idle) options_.on_idle();
}

std::shared_ptr<StepListener> SyncReplicas::Remove(StepConnection* connection) {
  connection->closed_ = true;
  tokens_.Release(connection->session_);
  pins_.Forget(connection->session_);
  // Memory that the worker may still map is used again; what it computes with it is refused, as the stream is closed.
  if (connection->value_path_ == ValuePath::kShared) connection->token_values_.reset();
  std::shared_ptr<StepListener> listener = std::move(connection->listener_);
  connections_.erase(connection->session_);
  return listener;
}

VariableStore::Snapshot SyncReplicas::TakeSnapshot() const {
  MutexLock lock(&mutex_);
  return store_->TakeSnapshot();
}

void SyncReplicas::Stop() {
  MutexLock lock(&mutex_);
  // Frames that are being added hold on to the set; without being the current one it is never committed.
  current_.reset();
  tokens_.StartStep();
  for (auto& entry : connections_) entry.second->token_.reset();
}

void SyncReplicas::Finish(std::string message) {
  Listeners listeners;
  {
    MutexLock lock(&mutex_);
    finished_ = true;
    finish_message_ = std::move(message);
    listeners = Waiting();
  }
  Wake(listeners);
}

bool SyncReplicas::idle() const {
  MutexLock lock(&mutex_);
  return connections_.empty();
}

bool SyncReplicas::connected(uint64_t session) const {
  MutexLock lock(&mutex_);
  return connections_.count(session) > 0;
}

int64_t SyncReplicas::step() const {
  MutexLock lock(&mutex_);
  return store_->step();
}

SyncReplicas::Listeners SyncReplicas::Waiting() const {
  Listeners listeners;
  listeners.reserve(connections_.size());
  for (const auto& entry : connections_) {
    if (HasReply(*entry.second)) listeners.push_back(entry.second->listener_);
  }
  return listeners;
}

bool SyncReplicas::HasReply(const StepConnection& connection) const {
  if (connection.closed_ || connection.finish_sent_) return false;
  if (connection.awaiting_ && (finished_ || failed_)) return finished_;
  if (connection.awaiting_ && connection.token_) return true;  // perhaps values first
  const int64_t step = store_->step();
  // Those that FeedValues sends.
  const bool takes_values = connection.awaiting_ || connection.pushing_;
  if (!takes_values || connection.pushing_step_ != step || !StreamsValues(connection)) return false;
  const size_t num_final = current_ == nullptr ? 0 : current_->num_finished_segments();
  return connection.feed_.HasNext(step, MayRunAhead(connection), num_final);
}

void SyncReplicas::Wake(const Listeners& listeners) {
  for (const auto& listener : listeners) {
    if (listener != nullptr) listener->OnReplyReady();
  }
}

void SyncReplicas::UpdateRate(absl::Time now) {
  if (now - marks_[1].time < kRateWindow) return;
  marks_[0] = marks_[1];
  marks_[1] = NewMark(now);
}

SyncReplicas::Mark SyncReplicas::NewMark(absl::Time now) const {
  return {now, store_->step(), bytes_received_, bytes_sent_};
}

void SyncReplicas::FillStatus(RunStatus* status) const {
  MutexLock lock(&mutex_);
  const absl::Time now = options_.clock->Now();
  status->set_global_step(store_->step());
  if (last_loss_) status->set_loss(*last_loss_);
  status->set_learning_rate(learning_rate_);
  const Mark& mark = marks_[0];
  const double seconds = absl::ToDoubleSeconds(now - mark.time);
  const auto steps = static_cast<double>(store_->step() - mark.step);
  if (seconds > 0) status->set_steps_per_second(steps / seconds);
  if (steps > 0) {
    status->set_bytes_received_per_step(static_cast<double>(bytes_received_ - mark.bytes_received) / steps);
    status->set_bytes_sent_per_step(static_cast<double>(bytes_sent_ - mark.bytes_sent) / steps);
  }
  status->set_accepted(accepted_);
  status->set_duplicate(duplicate_);
  status->set_rejected(rejected_);
  for (const auto& entry : connections_) {
    WorkerStatus* worker = status->add_worker();
    *worker = entry.second->stats_;
    worker->set_silent_seconds(absl::ToDoubleSeconds(now - entry.second->last_heard_));
    const TokenQueue::Lease* lease = tokens_.FindLease(entry.first);
    if (lease == nullptr) continue;
    worker->set_step(store_->step());
    worker->set_first_slot(lease->block.first);
    worker->set_slot_count(lease->block.count);
    worker->set_lease_seconds(absl::ToDoubleSeconds(lease->deadline - now));
    worker->set_backup(lease->backup);
  }
  // The ids of sessions are random: people would find their workers in another order after each restart.
  std::sort(status->mutable_worker()->begin(), status->mutable_worker()->end(),
            [](const WorkerStatus& a, const WorkerStatus& b) { return a.name() < b.name(); });
}

}  // namespace lockstep
