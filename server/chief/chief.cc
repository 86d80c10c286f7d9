#include "server/chief/chief.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/backoff.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/checkpoint/latest_valid.h"
#include "common/config/compression.h"
#include "glog/logging.h"
#include "server/ps/memory_limit.h"

namespace lockstep {
namespace {

constexpr absl::Duration kGoodbyeLimit = absl::Seconds(2);
// What waits of the event file is written within this at the end, or lost.
constexpr absl::Duration kEventLimit = absl::Seconds(5);
constexpr absl::Duration kIdleLogPeriod = absl::Seconds(5);
// A session that nobody has used for so long, and that has no stream, is forgotten.
constexpr absl::Duration kSessionExpiry = absl::Seconds(60);
constexpr size_t kMaxSessions = 4096;
constexpr size_t kMaxWorkerName = 256;

}  // namespace

absl::StatusOr<std::unique_ptr<Chief>> Chief::Create(Options options) {
  std::unique_ptr<RunDirectory> directory;
  if (!options.logdir.empty()) {
    ASSIGN_OR_RETURN(directory, RunDirectory::Open(options.fs, options.logdir));
  }
  std::unique_ptr<Chief> chief(new Chief(std::move(options), std::move(directory)));
  RETURN_IF_ERROR(chief->Start());
  return chief;
}

Chief::Chief(Options options, std::unique_ptr<RunDirectory> directory)
    : options_(std::move(options)), total_steps_(options_.config.training().steps()), directory_(std::move(directory)) {
  // Without a logdir nothing can be persisted, but a restarted chief must still not be taken for the one before.
  epoch_ = directory_ != nullptr ? directory_->epoch() : absl::ToUnixMicros(options_.clock->WallTime());
  if (!options_.share_memory || CompressionOf(options_.config.compression()).any()) return;
  auto memory = SharedMemory::Create(1);
  if (memory.ok()) {
    shared_memory_ = *std::move(memory);
  } else {
    LOG(WARNING) << memory.status().message();
  }
}

Chief::~Chief() {
  housekeeping_.reset();
  // Callbacks of the sync reach the saver, and those of the saver the events.
  sync_.reset();
  saver_.reset();
}

absl::Status Chief::Start() {
  if (directory_ != nullptr) {
    ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, directory_->ReadRecord());
    if (record) {
      RETURN_IF_ERROR(CheckSameRun(record->config(), options_.config));
      RETURN_IF_ERROR(StartModel(std::make_shared<RunContract>(*record)));
    }
  }
  PeriodicTask::Options periodic;
  periodic.clock = options_.clock;
  periodic.period = options_.housekeeping_period;
  housekeeping_ = std::make_unique<PeriodicTask>(periodic, [this] { Housekeep(); });
  return absl::OkStatus();
}

absl::Status Chief::FillStore(VariableStore* store, bool* restored) {
  *restored = false;
  if (directory_ != nullptr) {
    ASSIGN_OR_RETURN(
        const absl::optional<std::string> newest,
        NewestValidCheckpoint(options_.fs, options_.logdir, [](const std::string& prefix, const absl::Status& why) {
          LOG(WARNING) << "checkpoint " << prefix << " is damaged and skipped: " << why.message();
        }));
    if (newest) {
      ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(options_.fs, *newest));
      RETURN_IF_ERROR(store->Restore(*reader));
      LOG(INFO) << "restored step " << store->step() << " from " << *newest;
      MutexLock lock(&mutex_);
      checkpoint_ = *newest;
      saved_step_ = store->step();
      *restored = true;
      return absl::OkStatus();
    }
  }
  store->Initialize(options_.config.training().seed());
  const std::string& warm_start = options_.config.checkpoint().warm_start();
  if (warm_start.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(options_.fs, warm_start));
  ASSIGN_OR_RETURN(const std::vector<std::string> missing, store->WarmStart(*reader));
  if (missing.size() == store->layout().variables().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("warm start: ", warm_start, " has none of the model's variables, ", missing.front(), " for one"));
  }
  LOG(INFO) << "warm start from " << warm_start;
  LOG_IF(WARNING, !missing.empty()) << warm_start
                                    << " lacks and leaves at their initial values: " << absl::StrJoin(missing, ", ");
  return absl::OkStatus();
}

absl::Status Chief::StartModel(std::shared_ptr<const RunContract> contract) {
  {
    MutexLock lock(&mutex_);
    phase_ = RunStatus::RESTORING;
  }
  ASSIGN_OR_RETURN(auto store,
                   VariableStore::Create(contract->model(), options_.config.optimizer(),
                                         CompressionOf(options_.config.compression()),
                                         options_.config.training().replicas_to_aggregate(), shares_memory()));
  FileSystem* const fs = options_.fs != nullptr ? options_.fs : FileSystem::Real();
  RETURN_IF_ERROR(store->CheckMemory(/*saves=*/directory_ != nullptr, FindMemoryLimit(fs, PhysicalMemory())));
  bool restored = false;
  RETURN_IF_ERROR(FillStore(store.get(), &restored));

  // Members are set when nothing can fail any more: after an error another worker may declare another model.
  std::unique_ptr<EventQueue> events;
  std::unique_ptr<Saver> saver;
  if (directory_ != nullptr) {
    RETURN_IF_ERROR(WriteRecord(*contract));
    Saver::Options saver_options;
    saver_options.fs = options_.fs;
    saver_options.clock = options_.clock;
    saver_options.directory = options_.logdir;
    saver_options.keep = options_.config.checkpoint().keep();
    saver_options.may_save = [this] { return CheckOwned(); };
    saver_options.on_saved = [this](int64_t step, const std::string& prefix, const absl::Status& status) {
      OnSaved(step, prefix, status);
    };
    ASSIGN_OR_RETURN(saver, Saver::Create(std::move(saver_options)));
    EventQueue::Options event_options;
    event_options.clock = options_.clock;
    ASSIGN_OR_RETURN(auto writer, EventWriter::Create(options_.fs, options_.clock, options_.logdir));
    events = std::make_unique<EventQueue>(event_options, std::move(writer));
  }
  events_ = std::move(events);
  saver_ = std::move(saver);
  if (events_ != nullptr) events_->WriteSessionLog(SessionLog::START, store->step());
  // Here, where no worker waits for a step yet.
  if (saver_ != nullptr) store->PrepareSnapshots();
  // As the original: the first checkpoint is made at once.
  if (saver_ != nullptr && !restored) saver_->Save(store->TakeSnapshot());

  const bool finished = store->step() >= total_steps_;
  if (finished) LOG(INFO) << "the run is finished: step " << store->step() << " of " << total_steps_;
  auto replicas = std::make_unique<SyncReplicas>(SyncOptions(), store.get());

  MutexLock lock(&mutex_);
  const absl::Time now = options_.clock->Now();
  const double save_period = options_.config.checkpoint().every_seconds();
  if (save_period > 0) next_save_ = now + absl::Seconds(save_period);
  last_rate_time_ = now;
  last_rate_step_ = store->step();
  store_ = std::move(store);
  sync_ = std::move(replicas);
  contract_ = std::move(contract);
  phase_ = finished ? RunStatus::FINISHED : RunStatus::TRAINING;
  changed_.SignalAll();
  return absl::OkStatus();
}

SyncReplicas::Options Chief::SyncOptions() {
  SyncReplicas::Options sync;
  sync.clock = options_.clock;
  sync.epoch = epoch_;
  sync.slots = options_.config.training().replicas_to_aggregate();
  sync.total_steps = total_steps_;
  sync.lease = absl::Seconds(options_.config.cluster().lease_seconds());
  sync.learning_rate = options_.config.optimizer().learning_rate();
  sync.snapshot_every_steps = saver_ != nullptr ? options_.config.checkpoint().every_steps() : 0;
  sync.on_commit = [this](const SyncReplicas::Committed& committed) { OnCommit(committed); };
  sync.on_snapshot = [this](VariableStore::Snapshot snapshot) {
    if (saver_ != nullptr) saver_->Save(std::move(snapshot));
  };
  sync.on_failure = [this](absl::Status status) {
    MutexLock lock(&mutex_);
    LOG(ERROR) << "the run stops: " << status.message();
    failure_ = std::move(status);
    phase_ = RunStatus::FAILED;
    changed_.SignalAll();
  };
  sync.on_idle = [this] {
    MutexLock lock(&mutex_);
    changed_.SignalAll();
  };
  return sync;
}

SyncReplicas* Chief::sync() const {
  MutexLock lock(&mutex_);
  return sync_.get();
}

GetRunReply Chief::GetRun() const {
  GetRunReply reply;
  *reply.mutable_config() = options_.config;
  reply.set_epoch(epoch_);
  return reply;
}

absl::Status Chief::WriteRecord(const RunContract& contract) const {
  if (directory_ == nullptr) return absl::OkStatus();
  RunRecord record;
  *record.mutable_config() = options_.config;
  contract.FillRecord(&record);
  return directory_->WriteRecord(record);
}

absl::Status Chief::RecordData(const RunContract& recorded, const OpenSessionRequest& first) {
  RETURN_IF_ERROR(recorded.Check(first));
  auto contract = std::make_shared<const RunContract>(first);
  RETURN_IF_ERROR(WriteRecord(*contract));
  MutexLock lock(&mutex_);
  contract_ = std::move(contract);
  return absl::OkStatus();
}

absl::Status Chief::Agree(const OpenSessionRequest& request) {
  std::shared_ptr<const RunContract> contract;
  {
    MutexLock lock(&mutex_);
    if (starting_) return absl::UnavailableError("the chief is initializing the model");
    if (stop_requested_) return absl::UnavailableError("the chief is stopping");
    contract = contract_;
    starting_ = contract == nullptr || !contract->knows_data();
  }
  if (contract != nullptr && contract->knows_data()) return contract->Check(request);
  const absl::Status status =
      contract == nullptr ? StartModel(std::make_shared<const RunContract>(request)) : RecordData(*contract, request);
  MutexLock lock(&mutex_);
  starting_ = false;
  if (contract != nullptr) return status;
  if (!status.ok()) {
    phase_ = RunStatus::WAITING_FOR_MODEL;
    return status;
  }
  LOG(INFO) << "the model was declared by " << absl::CHexEscape(request.worker()) << ": "
            << request.model().variables_size() << " variables";
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Chief::FindOrAddSession(const OpenSessionRequest& request) {
  const absl::Time now = options_.clock->Now();
  uint64_t oldest = 0;
  absl::Time oldest_use = absl::InfiniteFuture();
  for (auto& entry : sessions_) {
    Session& session = entry.second;
    if (session.worker == request.worker() && session.incarnation == request.incarnation()) {
      session.last_used = now;
      return entry.first;
    }
    if (session.last_used < oldest_use && !sync_->connected(entry.first)) {
      oldest = entry.first;
      oldest_use = session.last_used;
    }
  }
  if (sessions_.size() >= kMaxSessions) {
    if (oldest == 0) return absl::UnavailableError(absl::StrCat("all of ", kMaxSessions, " sessions are in use"));
    sessions_.erase(oldest);
  }
  uint64_t id = 0;
  while (id == 0 || sessions_.count(id) > 0) id = options_.draw_session_id();
  sessions_[id] = {request.worker(), request.incarnation(), now, /*streamed=*/false};
  LOG(INFO) << absl::CHexEscape(request.worker()) << " opened session " << ShortSessionId(id);
  return id;
}

void Chief::ExpireSessions(absl::Time now) {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const bool expired = now - it->second.last_used > kSessionExpiry && !sync_->connected(it->first);
    it = expired ? sessions_.erase(it) : std::next(it);
  }
}

absl::StatusOr<Chief::Session*> Chief::UseSession(uint64_t session_id, int64_t epoch) {
  const auto session = sessions_.find(session_id);
  if (epoch != epoch_ || session == sessions_.end()) {
    return absl::AbortedError(
        absl::StrCat("session ", session_id, " of epoch ", epoch, " is unknown; the chief's epoch is ", epoch_));
  }
  session->second.last_used = options_.clock->Now();
  return &session->second;
}

absl::StatusOr<OpenSessionReply> Chief::OpenSession(const OpenSessionRequest& request) {
  if (request.worker().size() > kMaxWorkerName) {
    return absl::InvalidArgumentError(absl::StrCat("the worker's name has ", request.worker().size(),
                                                   " bytes; at most ", kMaxWorkerName, " are allowed"));
  }
  const absl::Status agreed = Agree(request);
  if (absl::IsFailedPrecondition(agreed)) LOG(WARNING) << "a worker is refused: " << agreed.message();
  RETURN_IF_ERROR(agreed);
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const uint64_t id, FindOrAddSession(request));
  changed_.SignalAll();
  OpenSessionReply reply;
  reply.set_session_id(id);
  reply.set_epoch(epoch_);
  reply.set_global_step(sync_->step());
  reply.set_piece_elements(ParameterLayout::kSegmentElements);
  reply.set_lease_seconds(options_.config.cluster().lease_seconds());
  if (shared_memory_ != nullptr) *reply.mutable_shared_memory() = shared_memory_->handle();
  return reply;
}

absl::StatusOr<HeartbeatReply> Chief::Heartbeat(const HeartbeatRequest& request) {
  SyncReplicas* replicas = nullptr;
  HeartbeatReply reply;
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(UseSession(request.session_id(), request.epoch()).status());
    replicas = sync_.get();
    reply.set_finished(phase_ == RunStatus::FINISHED || phase_ == RunStatus::FAILED);
  }
  replicas->Heartbeat(request.session_id());
  reply.set_global_step(replicas->step());
  return reply;
}

absl::Status Chief::CheckSession(uint64_t session_id, int64_t epoch) {
  MutexLock lock(&mutex_);
  return UseSession(session_id, epoch).status();
}

absl::StatusOr<std::shared_ptr<StepConnection>> Chief::OpenStep(uint64_t session_id, int64_t epoch,
                                                                ValuePath value_path,
                                                                std::shared_ptr<StepListener> listener) {
  std::string worker;
  {
    MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(Session* const session, UseSession(session_id, epoch));
    if (stop_requested_) return absl::UnavailableError("the chief is stopping");
    session->streamed = true;
    worker = session->worker;
  }
  return sync()->Connect(session_id, std::move(worker), value_path, std::move(listener));
}

RunStatus Chief::GetStatus() const {
  RunStatus status;
  SyncReplicas* replicas = nullptr;
  {
    MutexLock lock(&mutex_);
    status.set_phase(phase_);
    status.set_total_steps(total_steps_);
    status.set_epoch(epoch_);
    status.set_replicas_to_aggregate(options_.config.training().replicas_to_aggregate());
    status.set_examples_per_step(options_.config.input().batch_size() *
                                 options_.config.training().replicas_to_aggregate());
    status.set_logdir(options_.logdir);
    status.set_checkpoint(checkpoint_);
    status.set_message(std::string(failure_.message()));
    replicas = sync_.get();
  }
  if (replicas != nullptr) replicas->FillStatus(&status);
  if (status.phase() == RunStatus::WAITING_FOR_MODEL) status.set_message("waiting for a worker to declare the model");
  if (status.phase() == RunStatus::TRAINING && status.worker_size() == 0) status.set_message("waiting for workers");
  return status;
}

void Chief::OnCommit(const SyncReplicas::Committed& committed) {
  const int64_t every = options_.config.summary().every_steps();
  if (events_ != nullptr && every > 0 && (committed.step % every == 0 || committed.step == total_steps_)) {
    double rate = 0;
    {
      MutexLock lock(&mutex_);
      const absl::Time now = options_.clock->Now();
      const double seconds = absl::ToDoubleSeconds(now - last_rate_time_);
      if (seconds > 0) rate = static_cast<double>(committed.step - last_rate_step_) / seconds;
      last_rate_time_ = now;
      last_rate_step_ = committed.step;
    }
    events_->WriteScalar("loss", static_cast<float>(committed.mean_loss), committed.step);
    if (rate > 0) events_->WriteScalar("global_step/sec", static_cast<float>(rate), committed.step);
  }
  if (committed.step >= total_steps_) {
    MutexLock lock(&mutex_);
    if (phase_ == RunStatus::TRAINING) phase_ = RunStatus::FINISHED;
    changed_.SignalAll();
  }
}

absl::Status Chief::CheckOwned() {
  const absl::Status status = directory_->CheckOwned();
  if (!absl::IsFailedPrecondition(status)) return status;
  MutexLock lock(&mutex_);
  taken_over_ = status;
  stop_requested_ = true;
  changed_.SignalAll();
  return status;
}

void Chief::OnSaved(int64_t step, const std::string& prefix, const absl::Status& status) {
  if (status.ok()) {
    LOG(INFO) << "saved " << prefix;
    events_->WriteSessionLog(SessionLog::CHECKPOINT, step, prefix);
  }
  MutexLock lock(&mutex_);
  if (!status.ok()) return;
  checkpoint_ = prefix;
  saved_step_ = step;
}

void Chief::Housekeep() {
  SyncReplicas* const replicas = sync();
  if (replicas != nullptr) replicas->Tick();
  const bool idle = replicas == nullptr || replicas->idle();
  bool save = false;
  {
    MutexLock lock(&mutex_);
    const absl::Time now = options_.clock->Now();
    ExpireSessions(now);
    if (now >= next_save_ && phase_ == RunStatus::TRAINING && saver_ != nullptr) {
      save = replicas != nullptr && saved_step_ != replicas->step();
      next_save_ = now + absl::Seconds(options_.config.checkpoint().every_seconds());
    }
    const bool waiting = idle && (phase_ == RunStatus::TRAINING || phase_ == RunStatus::WAITING_FOR_MODEL);
    if (waiting && now >= next_idle_log_) {
      LOG(INFO) << (replicas == nullptr
                        ? "waiting for a worker to declare the model"
                        : absl::StrCat("step ", replicas->step(), " of ", total_steps_, ": waiting for workers"));
    }
    if (!waiting || now >= next_idle_log_) next_idle_log_ = now + kIdleLogPeriod;
  }
  if (save) saver_->Save(replicas->TakeSnapshot());
}

absl::Status Chief::Save() {
  SyncReplicas* const replicas = sync();
  if (replicas == nullptr || saver_ == nullptr) return absl::OkStatus();
  VariableStore::Snapshot snapshot = replicas->TakeSnapshot();
  const int64_t step = snapshot.step;
  {
    MutexLock lock(&mutex_);
    if (saved_step_ >= step) return absl::OkStatus();
    saver_->LimitWaits(stop_deadline_);
  }
  saver_->SaveAtOnce(std::move(snapshot));
  const absl::Status status = saver_->WaitUntilIdle();
  if (!absl::IsDeadlineExceeded(status)) return status;
  const absl::Duration limit = absl::Seconds(options_.config.checkpoint().stop_seconds());
  return absl::DeadlineExceededError(
      absl::StrCat("the disk has not taken step ", step, " within ", absl::FormatDuration(limit)));
}

void Chief::EndEvents() {
  if (sync() == nullptr || events_ == nullptr) return;
  events_->WriteSessionLog(SessionLog::STOP, 0);
  events_->Flush(kEventLimit).IgnoreError();  // logged
}

absl::Status Chief::FinishRun() {
  SyncReplicas* const replicas = sync();
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = failure_;
  }
  if (status.ok()) {
    status = Save();
    {
      MutexLock lock(&mutex_);
      if (!taken_over_.ok()) return taken_over_;
    }
    if (!status.ok()) {
      status = absl::Status(status.code(),
                            absl::StrCat("training is done, but the last step could not be saved: ", status.message()));
    }
  }
  replicas->Finish(std::string(status.message()));
  AwaitGoodbyes(replicas);
  EndEvents();
  if (status.ok() && Linger()) AwaitGoodbyes(replicas);
  return status;
}

bool Chief::Linger() {
  const absl::Duration linger = absl::Seconds(options_.config.cluster().linger_seconds());
  if (linger <= absl::ZeroDuration()) return false;
  LOG(INFO) << "the run is over; workers that start within " << absl::FormatDuration(linger) << " are told so";
  MutexLock lock(&mutex_);
  const absl::Time deadline = options_.clock->Now() + linger;
  while (!stop_requested_) {
    if (options_.clock->WaitUntil(&changed_, &mutex_, deadline)) return true;
  }
  return false;
}

void Chief::AwaitGoodbyes(SyncReplicas* replicas) {
  // A worker that has just opened its session, or the first that looks for a run which was finished before, is told
  // too.
  MutexLock lock(&mutex_);
  const auto expected = [this] {
    mutex_.AssertHeld();
    return sessions_.empty() ||
           std::any_of(sessions_.begin(), sessions_.end(), [](const auto& entry) { return !entry.second.streamed; });
  };
  const absl::Time deadline = options_.clock->Now() + kGoodbyeLimit;
  while (expected() || !replicas->idle()) {
    if (options_.clock->WaitUntil(&changed_, &mutex_, deadline)) return;
  }
}

absl::Status Chief::Wait() {
  bool stopped = false;
  {
    MutexLock lock(&mutex_);
    while (phase_ != RunStatus::FINISHED && phase_ != RunStatus::FAILED && !stop_requested_) changed_.Wait(&mutex_);
    // Workers are not told: they look for the chief and find its successor.
    if (!taken_over_.ok()) return taken_over_;
    stopped = phase_ != RunStatus::FINISHED && phase_ != RunStatus::FAILED;
  }
  return stopped ? StopRun() : FinishRun();
}

bool Chief::SleepForStop(absl::Duration delay) {
  MutexLock lock(&mutex_);
  const absl::Time wake = options_.clock->Now() + delay;
  if (wake >= stop_deadline_) return false;
  while (!options_.clock->WaitUntil(&changed_, &mutex_, wake)) {
  }
  return true;
}

absl::Status Chief::SaveForStop() {
  Backoff::Options delays;
  delays.max = absl::Seconds(2);
  Backoff backoff(delays, static_cast<uint64_t>(epoch_));
  while (true) {
    const absl::Status status = Save();
    const bool may_pass = absl::IsInternal(status) || absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
    if (!may_pass || !SleepForStop(backoff.Next())) return status;
    LOG(WARNING) << "trying again to save the last step";
  }
}

absl::Status Chief::StopRun() {
  SyncReplicas* const replicas = sync();
  if (replicas != nullptr) replicas->Stop();
  const absl::Status saved = SaveForStop();
  EndEvents();
  if (replicas == nullptr) return absl::CancelledError("stopped before a model was declared");
  const std::string stopped = absl::StrCat("stopped at step ", replicas->step());
  if (!saved.ok()) {
    return absl::Status(saved.code(), absl::StrCat(stopped, ", which is not saved: ", saved.message()));
  }
  MutexLock lock(&mutex_);
  return absl::CancelledError(saver_ == nullptr ? absl::StrCat(stopped, ", without a logdir")
                                                : absl::StrCat(stopped, ", saved ", checkpoint_));
}

void Chief::RequestStop() {
  MutexLock lock(&mutex_);
  if (stop_requested_) return;
  stop_requested_ = true;
  stop_deadline_ = options_.clock->Now() + absl::Seconds(options_.config.checkpoint().stop_seconds());
  if (sync_ != nullptr && saver_ != nullptr) saver_->LimitWaits(stop_deadline_);
  changed_.SignalAll();
}

}  // namespace lockstep
