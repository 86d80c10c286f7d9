#include "lockstep/server/sync/sync_replicas.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/sync/machine/contribution_checker.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace {

StepMachine NewMachine(StepMachine::Options options, std::unique_ptr<StepPolicy> policy, const StepShard& shard) {
  options.max_partial_sums = shard.max_partial_sums();
  return StepMachine(options, std::move(policy), shard.step());
}

// Returns the segments of the variables to which the values belong.
std::vector<int> SegmentsOf(absl::Span<const AssignedValue> values, const ParameterLayout& layout) {
  std::vector<int> segments;
  for (size_t i = 0; i < layout.segments().size(); ++i) {
    const std::string& variable = layout.variables()[layout.segments()[i].variable].spec.name();
    const bool is_set = absl::c_any_of(values, [&](const AssignedValue& value) { return value.key == variable; });
    if (is_set) segments.push_back(static_cast<int>(i));
  }
  return segments;
}

RunEvent EventOf(const WorkTimes::Slow& slow, int64_t step) {
  RunEvent event{RunEvent::kSlow, step, slow.worker};
  event.factor = slow.factor;
  event.time = slow.longer;
  return event;
}

}  // namespace

SyncReplicas::SyncReplicas(Options options, std::unique_ptr<StepShard> shard, std::unique_ptr<StepPolicy> policy)
    : options_(std::move(options)),
      stages_(!policy->traits().sums_while_streaming),
      shard_(std::move(shard)),
      machine_(NewMachine(options_.machine, std::move(policy), *shard_)),
      rates_(shard_->step(), options_.clock->Now()),
      times_(options_.clock->Now()),
      pins_(MaxOldVersions(*shard_, options_.old_version_bytes, options_.machine.slots)) {
  MutexLock lock(&mutex_);
  if (machine_.running()) BeginStep();
}

SyncReplicas::~SyncReplicas() {
  MutexLock lock(&mutex_);
  CHECK(connections_.empty()) << connections_.size() << " Step streams outlive their chief";
}

void SyncReplicas::BeginStep() {
  sums_ = shard_->Begin(shard_->step());
  rates_.OnBegun(shard_->learning_rate());
  announced_segments_ = 0;
}

std::shared_ptr<StepConnection> SyncReplicas::Connect(uint64_t session, const WorkerIdentity& worker,
                                                      ValuePath value_path, std::shared_ptr<StepListener> listener,
                                                      int64_t changes) {
  const std::string name = worker.ToString();
  Outbox outbox;
  std::shared_ptr<StepConnection> connection;
  {
    MutexLock lock(&mutex_);
    const Compression& compression = shard_->compression();
    ContributionChecker::Options checks;
    checks.gradients = value_path == ValuePath::kInProcess ? v1::DT_FLOAT : compression.gradients;
    checks.sparse = compression.top_k > 0;
    const StepConnection::Options options{this,
                                          &mutex_,
                                          session,
                                          name,
                                          FrameLimitsOf(shard_->layout(), options_.machine.slots, checks.sparse),
                                          ContributionChecker(&shard_->layout(), checks)};
    auto delivery = NewValueDelivery(value_path, {session, listener}, shard_.get(), &pins_,
                                     /*finishes_versions=*/!machine_.traits().commit_voids_tokens);
    connection.reset(new StepConnection(options, std::move(listener), std::move(delivery)));
    connection->AssertHeld();
    connection->changes_ = changes;
    const absl::Time now = options_.clock->Now();
    TakeAndCommit(machine_.OnConnected(session, name, now), now, &outbox);
    rates_.AddWorker(session, worker);
    times_.AddWorker(session, worker.name);
    connections_[session] = connection;
  }
  CarryOut(&outbox);
  return connection;
}

void SyncReplicas::Close(StepConnection* connection) {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    connection->AssertHeld();
    if (connection->closed_) return;
    const uint64_t session = connection->session_;  // Remove may drop the last reference
    const std::string name = connection->name_;
    Remove(session, /*why=*/absl::OkStatus(), /*at_once=*/false, &outbox);
    const absl::Time now = options_.clock->Now();
    TakeAndCommit(machine_.OnDisconnected(session, now), now, &outbox);
    RunEvent left{RunEvent::kLeft, shard_->step(), name};
    left.count = static_cast<int64_t>(connections_.size());
    outbox.last_events.push_back(std::move(left));
  }
  CarryOut(&outbox);
}

void SyncReplicas::Heartbeat(uint64_t session) {
  MutexLock lock(&mutex_);
  machine_.OnHeartbeat(session, options_.clock->Now());
}

void SyncReplicas::Tick() {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    const absl::Time now = options_.clock->Now();
    rates_.MoveMarks(shard_->step(), now);
    for (const WorkTimes::Slow& slow : times_.TakeSlow(now)) outbox.events.push_back(EventOf(slow, shard_->step()));
    TakeAndCommit(machine_.OnTick(now), now, &outbox);
  }
  CarryOut(&outbox);
}

VariableSnapshot SyncReplicas::TakeSnapshot() const {
  MutexLock lock(&mutex_);
  return TakeSnapshotLocked();
}

VariableSnapshot SyncReplicas::TakeSnapshotLocked() const {
  VariableSnapshot snapshot = shard_->TakeSnapshot();
  if (options_.log != nullptr) snapshot.session_state = options_.log->Serialize();
  snapshot.stream_positions = machine_.stream_positions();
  return snapshot;
}

void SyncReplicas::DropSums() {
  // Frames that are still being added keep their sums alive, but only the current sums are ever committed.
  sums_.reset();
  shard_->Abort();
}

void SyncReplicas::SetLimit(Limiter limiter, int64_t limit) {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    Take(machine_.SetLimit(limiter, limit, options_.clock->Now()), &outbox);
  }
  CarryOut(&outbox);
}

int64_t SyncReplicas::HoldForChange() {
  Outbox outbox;
  int64_t boundary = 0;
  {
    MutexLock lock(&mutex_);
    // Only the first holder sets the limit.
    if (changes_.holders++ == 0) {
      Take(machine_.SetLimit(Limiter::kChange, machine_.step() - 1, options_.clock->Now()), &outbox);
    }
    boundary = machine_.next_boundary();
  }
  CarryOut(&outbox);
  return boundary;
}

absl::optional<int64_t> SyncReplicas::AwaitHeld() {
  MutexLock lock(&mutex_);
  while (machine_.running()) changes_.not_running.Wait(&mutex_);
  if (machine_.state() != StepMachine::State::kHeld) return absl::nullopt;
  return machine_.step();
}

void SyncReplicas::ReleaseAfterChange() {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    if (--changes_.holders > 0) return;
    Take(machine_.SetLimit(Limiter::kChange, StepMachine::kNoLimit, options_.clock->Now()), &outbox);
  }
  CarryOut(&outbox);
}

void SyncReplicas::OnRoomForSnapshot() {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    Take(machine_.OnRoomForSnapshot(options_.clock->Now()), &outbox);
  }
  CarryOut(&outbox);
}

absl::optional<VariableSnapshot> SyncReplicas::TakeSnapshotIfRoom() {
  MutexLock lock(&mutex_);
  if (!machine_.TakeRoom()) return absl::nullopt;
  return TakeSnapshotLocked();
}

absl::Status SyncReplicas::CheckHeld() const {
  MutexLock lock(&mutex_);
  return CheckHeldLocked();
}

absl::Status SyncReplicas::CheckHeldLocked() const {
  switch (machine_.state()) {
    case StepMachine::State::kHeld:
      return absl::OkStatus();
    case StepMachine::State::kComplete:
    case StepMachine::State::kFinished:
      return absl::OutOfRangeError("the run is over");
    case StepMachine::State::kStopped:
      return absl::CancelledError("the chief was stopped");
    default:
      return absl::FailedPreconditionError("variables and settings are changed only between two steps");
  }
}

absl::Status SyncReplicas::CheckAssign(absl::Span<const AssignedValue> values) const {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckHeldLocked());
  return shard_->CheckAssign(values);
}

absl::Status SyncReplicas::Assign(absl::Span<const AssignedValue> values, ChangedBy by) {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(CheckHeldLocked());
    const std::shared_ptr<const PublishedValues> before = shard_->values();
    RETURN_IF_ERROR(shard_->Assign(values));
    const std::shared_ptr<const PublishedValues> after = shard_->values();
    if (after->constants != before->constants) pins_.OnConstantsReplaced();
    if (after->flat != before->flat || after->encoded != before->encoded) pins_.OnCurrentReplaced();
    if (options_.log != nullptr) options_.log->CountAssignment(by);  // a snapshot has both or none
    const std::vector<int> segments = SegmentsOf(values, shard_->layout());
    for (const auto& [session, connection] : connections_) {
      connection->AssertHeld();
      connection->delivery_->OnValuesSet(segments);
    }
    CloseExcessPins(options_.clock->Now(), &outbox);
  }
  CarryOut(&outbox);
  return absl::OkStatus();
}

absl::Status SyncReplicas::ChangeSettings(const v1::SessionState::Settings& settings,
                                          absl::optional<v1::GradientSettings> for_workers, ChangedBy by) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckHeldLocked());
  RETURN_IF_ERROR(shard_->SetOptimizer(settings.optimizer()));
  if (options_.log != nullptr) options_.log->CountChange(by, settings);  // a snapshot has both or none
  if (for_workers) changes_.for_workers = *std::move(for_workers);
  return absl::OkStatus();
}

void SyncReplicas::EndAt(int64_t step) {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    Take(machine_.EndAt(step, options_.clock->Now()), &outbox);
  }
  CarryOut(&outbox);
}

int64_t SyncReplicas::total_steps() const {
  MutexLock lock(&mutex_);
  return machine_.total_steps();
}

std::string SyncReplicas::end_reason() const {
  MutexLock lock(&mutex_);
  return end_reason_;
}

void SyncReplicas::Stop() {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    DropSums();
    Take(machine_.Stop(), &outbox);
  }
  CarryOut(&outbox);
}

void SyncReplicas::Finish(std::string message) {
  Outbox outbox;
  {
    MutexLock lock(&mutex_);
    finish_message_ = std::move(message);
    Take(machine_.Finish(), &outbox);
  }
  CarryOut(&outbox);
}

bool SyncReplicas::idle() const {
  MutexLock lock(&mutex_);
  return machine_.idle();
}

bool SyncReplicas::connected(uint64_t session) const {
  MutexLock lock(&mutex_);
  return machine_.connected(session);
}

int64_t SyncReplicas::step() const {
  MutexLock lock(&mutex_);
  return shard_->step();
}

void SyncReplicas::FillTimes(v1::WatchRunReply* reply) const {
  MutexLock lock(&mutex_);
  times_.Fill(reply);
  rates_.FillCounters(reply->mutable_counters());
  machine_.FillCounters(reply->mutable_counters());
}

void SyncReplicas::FillTimeLine(WorkTimes::Cursor* cursor, v1::WatchRunReply* reply) const {
  MutexLock lock(&mutex_);
  times_.FillTimeLine(cursor, reply);
}

void SyncReplicas::FillStatus(v1::RunStatus* status) const {
  MutexLock lock(&mutex_);
  const absl::Time now = options_.clock->Now();
  rates_.FillRun(shard_->step(), now, status);
  machine_.FillStatus(status);
  for (const auto& entry : connections_) {
    v1::WorkerStatus* const worker = status->add_worker();
    rates_.FillWorker(entry.first, worker);
    machine_.FillStatus(entry.first, now, worker);
  }
  // Session ids are random. Workers sorted by session id would appear in a different order after each restart.
  std::sort(status->mutable_worker()->begin(), status->mutable_worker()->end(),
            [](const v1::WorkerStatus& a, const v1::WorkerStatus& b) { return a.name() < b.name(); });
}

}  // namespace lockstep
