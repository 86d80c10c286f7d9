#include "lockstep/server/chief/training.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/kernels/rounding.h"
#include "lockstep/server/chief/run/run_settings.h"
#include "lockstep/server/ps/versions/snapshot_entries.h"
#include "lockstep/server/sync/arrivals/recorded_order.h"
#include "lockstep/server/sync/policy/policy_factory.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/workers/contribution_counts.h"

namespace lockstep {
namespace {

// Time to wait, before the event file ends, for threads that have committed a step to write its events. These threads
// do not block, but on a machine with few processors other threads may run first.
constexpr absl::Duration kTellLimit = absl::Seconds(5);

// A sink that passes summaries to a function and ignores session records.
class FunctionSink : public EventSink {
 public:
  explicit FunctionSink(SummaryWriter write) : write_(std::move(write)) {}

  void Write(v1::Event event) override {
    if (!event.has_summary()) return;
    const absl::Status written = CatchExceptions([&] { return write_(event.summary(), event.step()); });
    LOG_IF(ERROR, !written.ok()) << "a summary of step " << event.step() << " is lost: " << written.message();
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }
  const std::string& path() const override { return path_; }

 private:
  const SummaryWriter write_;
  const std::string path_ = "the program's summary writer";
};

// Returns null if no events are written.
absl::StatusOr<std::unique_ptr<EventQueue>> CreateEvents(const ChiefOptions& options) {
  EventQueue::Options queue;
  queue.clock = options.clock;
  queue.executor = options.machine.executor;
  if (options.summary_writer) {
    return std::make_unique<EventQueue>(queue, std::make_unique<FunctionSink>(options.summary_writer));
  }
  const std::string& directory = options.summary_dir.empty() ? options.logdir : options.summary_dir;
  if (directory.empty() || !options.write_events) return std::unique_ptr<EventQueue>();
  ASSIGN_OR_RETURN(auto writer, EventWriter::Create(options.fs, options.clock, directory, options.machine.host));
  return std::make_unique<EventQueue>(queue, std::move(writer));
}

RunSummaries::Options SummaryOptions(const Training::Options& options) {
  RunSummaries::Options summaries;
  summaries.clock = options.chief->clock;
  summaries.every_steps = options.config.summary().every_steps();
  summaries.writes_loss = options.chief->writes_loss;
  summaries.examples_per_step = options.config.input().batch_size() * options.config.training().replicas_to_aggregate();
  return summaries;
}

SaveSchedule::Options ScheduleOptions(const Training::Options& options) {
  SaveSchedule::Options schedule;
  schedule.period = absl::Seconds(options.config.checkpoint().every_seconds());
  schedule.seed = static_cast<uint64_t>(options.history->generation());
  return schedule;
}

// Returns the key of the first tensor with a value that is not finite; nullopt if there is none.
absl::optional<std::string> FindNonFinite(const VariableSnapshot& snapshot) {
  for (const SnapshotEntry& entry : EntriesOf(snapshot)) {
    if (entry.dtype != v1::DT_FLOAT) continue;
    const absl::string_view bytes = BytesOf(snapshot, entry);
    const auto* const values = reinterpret_cast<const float*>(bytes.data());
    if (!AllValuesFinite(static_cast<int64_t>(bytes.size() / sizeof(float)), values)) return entry.key;
  }
  return absl::nullopt;
}

size_t StateHash(const std::string& session_state) { return std::hash<std::string>()(session_state); }

}  // namespace

absl::StatusOr<std::unique_ptr<Training>> Training::Create(Options options, RestoredVariables restored) {
  const absl::optional<std::string> checkpoint = restored.checkpoint;
  const absl::Status read_memory = restored.read_memory;
  std::vector<int64_t> stream_positions = restored.stream_positions;
  ASSIGN_OR_RETURN(auto events, CreateEvents(*options.chief));
  std::unique_ptr<Training> training(new Training(std::move(options), std::move(restored), std::move(events)));
  RETURN_IF_ERROR(training->CreateSaver(checkpoint));
  training->summaries_.OnStart(training->store_->step(), /*resumed=*/checkpoint.has_value());
  // Pre-faulting runs while the workers prepare their first step, so they do not have to wait for it.
  if (training->checkpoint_writer_ != nullptr) {
    training->prefault_ =
        std::make_unique<Prefault>(training->options_.chief->machine.executor, training->store_->PrepareSnapshots());
  }
  StepShard::Options shard;
  shard.norms_every_steps = training->summaries_.norms_every_steps();
  shard.skips_non_finite = training->options_.config.training().skip_non_finite();
  shard.applies_sum = training->options_.config.training().reduction() == config::v1::TrainingConfig::SUM;
  const int64_t slots = training->options_.config.training().replicas_to_aggregate();
  training->sync_ = std::make_unique<SyncReplicas>(
      training->SyncOptions(), std::make_unique<StepShard>(training->store_.get(), slots, shard),
      NewStepPolicy(training->options_.config, training->store_->layout(), training->store_->step(),
                    std::move(stream_positions)));
  if (training->options_.awaits_first_save) {
    const absl::Status saved = training->Save();
    if (!saved.ok()) {
      training->RemoveArrivalLog();
      return saved;
    }
  } else if (training->checkpoint_writer_ != nullptr && !checkpoint) {
    training->SaveIfRoom();
  }
  training->CreateReads(read_memory);
  if (training->finished()) training->EndLog(absl::OkStatus());
  return training;
}

Training::Training(Options options, RestoredVariables restored, std::unique_ptr<EventQueue> events)
    : options_(std::move(options)),
      memory_needed_(restored.memory_needed),
      memory_limit_(restored.memory_limit),
      schedule_(ScheduleOptions(options_), options_.chief->clock->Now()),
      log_(options_.chief->followed || restored.session_state.assignments() > 0
               ? std::make_unique<CommitLog>(options_.chief->clock)
               : nullptr),
      store_(std::move(restored.store)),
      summaries_(SummaryOptions(options_), store_->step(), std::move(events)) {
  if (!options_.chief->followed) {
    restored.session_state.clear_hook();
    restored.session_state.clear_unseen();
  }
  if (log_ != nullptr) {
    log_->Start(store_->step(), restored.session_state, options_.history->changes(), SettingsOf(options_.config));
  }
  if (!restored.checkpoint) return;
  // Notes the checkpoint's state: if the run ends immediately, the followers' state may be newer and must be saved
  // again.
  if (restored.session_state.hook_size() > 0) schedule_.OnSnapshot(store_->step(), StateHash(log_->Serialize()));
  schedule_.OnSaved(store_->step(), *std::move(restored.checkpoint));
}

void Training::CreateReads(absl::Status memory) {
  VariableReads::Options reads;
  reads.clock = options_.chief->clock;
  reads.draw_id = options_.chief->machine.draw_session_id;
  reads.step = [sync = sync_.get()] { return sync->step(); };
  reads.take_snapshot = [sync = sync_.get()] { return sync->TakeSnapshot(); };
  reads.memory = std::move(memory);
  reads_ = std::make_unique<VariableReads>(std::move(reads));
}

absl::Status Training::CreateArrivalLog() {
  const ChiefOptions& chief = *options_.chief;
  const bool records = options_.config.training().record_order();
  if (!ReadsStreams(options_.config.training())) return absl::OkStatus();
  if (!records) {
    ASSIGN_OR_RETURN(const bool ends_record, ArrivalLog::HasFiles(chief.fs, chief.logdir));
    if (!ends_record) return absl::OkStatus();
  }
  ArrivalLog::Options log;
  log.fs = chief.fs;
  log.clock = chief.clock;
  log.executor = chief.machine.executor;
  log.logdir = chief.logdir;
  log.header.set_run_id(options_.history->run_id());
  log.header.set_generation(options_.history->generation());
  log.header.set_step(store_->step());
  ASSIGN_OR_RETURN(arrivals_, ArrivalLog::Create(std::move(log)));
  if (!records) arrivals_.reset();
  return absl::OkStatus();
}

void Training::RemoveArrivalLog() {
  if (!ReadsStreams(options_.config.training())) return;
  const ChiefOptions& chief = *options_.chief;
  chief.fs->Remove(ArrivalFile(chief.logdir, options_.history->generation())).IgnoreError();
}

absl::Status Training::CreateSaver(absl::optional<std::string> restored) {
  if (options_.chief->logdir.empty()) return absl::OkStatus();
  CheckpointWriter::Options checkpoint_writer;
  checkpoint_writer.fs = options_.chief->fs;
  checkpoint_writer.clock = options_.chief->clock;
  checkpoint_writer.executor = options_.chief->machine.executor;
  checkpoint_writer.checkpoints.directory = options_.chief->logdir;
  checkpoint_writer.checkpoints.base_name = options_.chief->checkpoint_basename;
  checkpoint_writer.checkpoints.max_to_keep = options_.config.checkpoint().keep();
  checkpoint_writer.checkpoints.keep_every = options_.chief->keep_checkpoint_every;
  checkpoint_writer.checkpoints.clock = options_.chief->clock;
  checkpoint_writer.restored = std::move(restored);
  // A checkpoint stores the number of changes that it includes, so these changes must be recorded before it is written.
  // So must the order in which the contributions to its steps arrived.
  checkpoint_writer.checkpoints.may_record = [this]() -> absl::Status {
    RETURN_IF_ERROR(options_.history->CheckOwned());
    if (arrivals_ != nullptr) RETURN_IF_ERROR(arrivals_->Sync());
    return options_.history->Flush();
  };
  checkpoint_writer.writes_all = saves_all();
  checkpoint_writer.events = this;
  ASSIGN_OR_RETURN(checkpoint_writer_, CheckpointWriter::Create(std::move(checkpoint_writer)));
  // Created last: if something fails and this incarnation tries again, it must not find a file of its own.
  return CreateArrivalLog();
}

SyncReplicas::Options Training::SyncOptions() {
  SyncReplicas::Options sync;
  sync.clock = options_.chief->clock;
  sync.machine.generation = options_.history->generation();
  sync.old_version_bytes = options_.chief->machine.old_version_bytes;
  sync.machine.slots = options_.config.training().replicas_to_aggregate();
  const int64_t staged = StagedContributions(options_.config, store_->gradient_bytes());
  if (staged > 0) sync.machine.max_staged = staged;
  sync.machine.total_steps = options_.history->target().total_steps();
  sync.log = log_.get();
  sync.arrivals = arrivals_.get();
  const bool has_order = arrivals_ != nullptr || !ReadsStreams(options_.config.training());
  // The replay command can build a model that is in the configuration, and start the program of a foreign framework.
  const bool is_foreign = options_.history->record().has_framework();
  if (checkpoint_writer_ != nullptr && has_order && (is_foreign || options_.config.has_model())) {
    sync.replay_command = absl::StrCat("lockstep replay --logdir=", options_.chief->logdir);
    if (is_foreign) sync.replay_program = " -- PROGRAM";
  }
  if (options_.chief->followed) sync.machine.limit = store_->step() - 1;
  sync.machine.lease = absl::Seconds(options_.config.cluster().lease_seconds());
  sync.machine.snapshot_every_steps = checkpoint_writer_ != nullptr ? options_.config.checkpoint().every_steps() : 0;
  if (options_.config.training().end_on_non_finite()) sync.non_finite = SyncReplicas::Options::NonFinite::kEnds;
  if (options_.config.training().skip_non_finite()) sync.non_finite = SyncReplicas::Options::NonFinite::kSkipsStep;
  sync.machine.await_room = checkpoint_writer_ != nullptr && saves_all();
  sync.events = this;
  return sync;
}

void Training::OnCommitted(const CommittedStep& committed) {
  const int64_t step = committed.commit.step();
  RunSummaries::Update update;
  update.step = step;
  update.mean_loss = committed.commit.mean_loss();
  update.learning_rate = committed.commit.learning_rate();
  update.norms = committed.norms;
  update.last = committed.last;
  update.metrics = FoldMetrics(committed.metrics);
  if (!update.metrics.empty()) KeepMetrics(step, update.metrics);
  if (committed.norms) KeepNorm(step, committed.norms->gradient);
  summaries_.OnCommit(update);
  AddContributionCounts(step, committed.last);
  options_.events->OnCommitted(committed);
  for (const std::string& bytes : committed.summaries) {
    v1::Summary summary;
    if (summary.ParseFromString(bytes)) {
      const absl::Status added = summaries_.Add(std::move(summary), step);
      LOG_IF_EVERY_N(WARNING, !added.ok(), 100) << added.message();
    } else {
      LOG_EVERY_N(WARNING, 100) << "a slot of step " << step << " reported " << bytes.size()
                                << " bytes that are not a summary";
    }
  }
}

void Training::KeepMetrics(int64_t step, const std::vector<StepMetric>& metrics) {
  MutexLock lock(&mutex_);
  if (step < metrics_step_) return;
  metrics_step_ = step;
  metrics_ = metrics;
}

void Training::KeepNorm(int64_t step, double norm) {
  MutexLock lock(&mutex_);
  if (step < norm_step_) return;
  norm_step_ = step;
  gradient_norm_ = norm;
}

void Training::AddContributionCounts(int64_t step, bool last) {
  // In a DETERMINISTIC run, each slot counts exactly once, so the counts would show nothing.
  const int64_t every = summaries_.norms_every_steps();
  if (every == 0 || !ReadsStreams(options_.config.training()) || (step % every != 0 && !last)) return;
  v1::RunStatus status;
  sync_->FillStatus(&status);
  const absl::Status added = summaries_.Add(ContributionCounts(status), step);
  LOG_IF_EVERY_N(WARNING, !added.ok(), 100) << added.message();
}

void Training::OnEvent(const RunEvent& event) {
  if (event.kind == RunEvent::kRoom) return sync_->OnRoomForSnapshot();
  if (event.kind == RunEvent::kFinished) EndLog(absl::OkStatus());
  options_.events->OnEvent(event);
  // If a successor has fenced this chief, CheckOwned reports that, which ends the run.
  if (event.kind == RunEvent::kSaveFailed && absl::IsFailedPrecondition(event.status)) {
    options_.history->CheckOwned().IgnoreError();
  }
  // Ends the log last, so that a follower that learns of the failure and then requests the end finds that the run has
  // failed.
  if (event.kind == RunEvent::kFailed) EndLog(event.status);
  if (event.kind != RunEvent::kSaved) return;
  summaries_.OnSaved(event.step, event.text);
  MutexLock lock(&mutex_);
  schedule_.OnSaved(event.step, event.text);
}

void Training::SetBatchSize(int64_t batch_size) {
  summaries_.SetExamplesPerStep(batch_size * options_.config.training().replicas_to_aggregate(), sync_->step());
}

std::string Training::checkpoint() const {
  MutexLock lock(&mutex_);
  return schedule_.checkpoint();
}

void Training::FillStatus(v1::RunStatus* status) const {
  const std::string path = checkpoint();
  status->set_checkpoint(ToUtf8(path, path.size()));
  sync_->FillStatus(status);
  MutexLock lock(&mutex_);
  for (const StepMetric& metric : metrics_) {
    v1::RunStatus::Metric* const shown = status->add_metric();
    shown->set_name(metric.name);
    shown->set_value(metric.mean);
  }
  if (gradient_norm_) status->set_gradient_norm(*gradient_norm_);
}

void Training::FillWatch(v1::WatchRunReply* reply) const {
  sync_->FillTimes(reply);
  v1::RunCounters& counters = *reply->mutable_counters();
  counters.set_memory_needed_bytes(static_cast<int64_t>(memory_needed_));
  counters.set_memory_limit_bytes(static_cast<int64_t>(memory_limit_));
  if (checkpoint_writer_ != nullptr) {
    counters.set_checkpoint_period_seconds(options_.config.checkpoint().every_seconds());
  }
}

Training::~Training() {
  if (checkpoint_writer_ == nullptr) return;
  // A finished write calls sync_->OnRoomForSnapshot through this object, so sync_ and checkpoint_writer_ must still
  // exist.
  checkpoint_writer_->LimitWaits(absl::InfiniteFuture());
  checkpoint_writer_->WaitUntilIdle().IgnoreError();
  // Its callbacks use sync_, so it must be destroyed first. Nothing calls it any more.
  checkpoint_writer_.reset();
}

void Training::SaveIfRoom() {
  if (auto snapshot = sync_->TakeSnapshotIfRoom()) SaveSoon(*std::move(snapshot));
}

void Training::SaveIfDue() {
  if (checkpoint_writer_ == nullptr) return;
  const int64_t step = sync_->step();
  {
    MutexLock lock(&mutex_);
    if (!schedule_.TakeDue(options_.chief->clock->Now(), step)) return;
  }
  SaveIfRoom();
}

bool Training::BeginSave() {
  if (checkpoint_writer_ == nullptr) return true;
  const int64_t step = sync_->step();
  bool saved = false, first = false;
  {
    MutexLock lock(&mutex_);
    saved = schedule_.HasSaved(step);
    first = !schedule_.HasSaved(0);
  }
  if (saved) {
    options_.events->OnEvent({RunEvent::kSavedBefore, step});
    return true;
  }
  // A newer snapshot must not replace the pending snapshot of the first checkpoint.
  if (first && checkpoint_writer_->Hurry()) return false;
  absl::optional<VariableSnapshot> snapshot = sync_->TakeSnapshotIfRoom();
  if (!snapshot) return false;
  if (saves_all()) {
    // Every snapshot has to be saved, so this one must not replace a waiting one.
    SaveSoon(*std::move(snapshot));
  } else {
    NoteSnapshot(*snapshot);
    checkpoint_writer_->SaveAtOnce(*std::move(snapshot));
  }
  checkpoint_writer_->Hurry();
  return true;
}

absl::Status Training::Save() {
  if (checkpoint_writer_ == nullptr) return absl::OkStatus();
  VariableStore::Snapshot snapshot = sync_->TakeSnapshot();
  const int64_t step = snapshot.step;
  const bool last = step >= sync_->total_steps();
  if (last) RETURN_IF_ERROR(RecordEnd(step));
  bool first, again;
  {
    MutexLock lock(&mutex_);
    // A saved snapshot of the last step may be older than the followers' present state.
    again = last && schedule_.FollowersWentOn(step, StateHash(snapshot.session_state));
    if (!again && schedule_.HasSaved(step)) return absl::OkStatus();
    first = !schedule_.HasSaved(0);
  }
  if (again) return SaveOver(std::move(snapshot));
  // A waiting snapshot must not be replaced if every snapshot has to be saved, or if it is the run's first.
  if (saves_all() || first) checkpoint_writer_->WaitUntilIdle().IgnoreError();
  NoteSnapshot(snapshot);
  checkpoint_writer_->SaveAtOnce(std::move(snapshot));
  const absl::Status status = checkpoint_writer_->WaitUntilIdle();
  if (!absl::IsDeadlineExceeded(status)) return status;
  const absl::Duration limit = absl::Seconds(options_.config.checkpoint().stop_seconds());
  return absl::DeadlineExceededError(
      absl::StrCat("the disk has not taken step ", step, " within ", absl::FormatDuration(limit)));
}

absl::Status Training::SaveIfFinite() {
  const VariableSnapshot snapshot = sync_->TakeSnapshot();
  const auto key = FindNonFinite(snapshot);
  if (!key) return Save();
  options_.events->OnEvent({RunEvent::kNotSaved, snapshot.step, "", *key});
  return absl::OkStatus();
}

absl::Status Training::SaveAgain() {
  return checkpoint_writer_ == nullptr ? absl::OkStatus() : SaveOver(sync_->TakeSnapshot());
}

absl::Status Training::SaveOver(VariableSnapshot snapshot) {
  NoteSnapshot(snapshot);
  return checkpoint_writer_->SaveAgain(std::move(snapshot));
}

void Training::NoteSnapshot(const VariableSnapshot& snapshot) {
  const size_t followers = StateHash(snapshot.session_state);
  MutexLock lock(&mutex_);
  schedule_.OnSnapshot(snapshot.step, followers);
}

void Training::LimitSaves(absl::Time deadline) {
  {
    MutexLock lock(&mutex_);
    schedule_.LimitRetries(deadline);
  }
  if (checkpoint_writer_ != nullptr) checkpoint_writer_->LimitWaits(deadline);
}

absl::Status Training::RecordEnd(int64_t step) {
  RunHistory* const history = options_.history;
  if (step >= history->target().total_steps() && !history->in_doubt()) return absl::OkStatus();
  RETURN_IF_ERROR(history->CheckOwned());
  return history->EndAt(step, sync_->end_reason());
}

absl::Status Training::SaveUntilDeadline() {
  while (true) {
    absl::Status status = Save();
    const absl::Time now = options_.chief->clock->Now();
    absl::optional<absl::Time> retry;
    {
      MutexLock lock(&mutex_);
      retry = schedule_.RetryAt(now, status);
    }
    if (!retry) return status;
    options_.chief->clock->Sleep(*retry - now);
    options_.events->OnEvent({RunEvent::kSaveRetried});
  }
}

void Training::SaveSoon(VariableSnapshot snapshot) {
  NoteSnapshot(snapshot);
  if (!checkpoint_writer_->Save(std::move(snapshot)) && saves_all()) sync_->OnRoomForSnapshot();
}

void Training::EndEvents() {
  AwaitCommitsTold();
  options_.chief->followed ? summaries_.Flush() : summaries_.OnEnd();
}

void Training::EndFollowersEvents() {
  AwaitCommitsTold();
  summaries_.OnEnd();
}

void Training::AwaitCommitsTold() {
  if (!sync_->AwaitCommitsTold(options_.chief->clock->Now() + kTellLimit)) {
    options_.events->OnEvent({RunEvent::kEventsMissing});
  }
}

void Training::EndLog(absl::Status why) {
  if (log_ != nullptr) log_->End(std::move(why));
}

absl::StatusOr<int64_t> Training::AwaitHeld() {
  if (const auto step = sync_->AwaitHeld()) return *step;
  return AwaitEndOfLog();
}

void Training::Fail(absl::Status why) {
  Abandon(why);
  options_.events->OnEvent({RunEvent::kFailed, sync_->step(), "", "", std::move(why)});
}

absl::Status Training::Explain(absl::Status status) {
  // Cancelled comes from SyncReplicas::Stop, and all of its callers also end the log with the reason.
  return absl::IsCancelled(status) ? AwaitEndOfLog() : status;
}

absl::Status Training::AwaitEndOfLog() {
  return log_->Await(std::numeric_limits<int64_t>::max(), absl::InfiniteFuture()).status();
}

void Training::Abandon(const absl::Status& why) {
  sync_->Stop();
  EndLog(why);
}

absl::Status Training::Stop() {
  Abandon(absl::CancelledError("the chief was stopped"));
  const absl::Status saved = SaveUntilDeadline();
  EndEvents();
  const std::string stopped = absl::StrCat("stopped at step ", sync_->step());
  if (!saved.ok()) {
    return absl::Status(saved.code(), absl::StrCat(stopped, ", which is not saved: ", saved.message()));
  }
  return absl::CancelledError(checkpoint_writer_ == nullptr ? absl::StrCat(stopped, ", without a logdir")
                                                            : absl::StrCat(stopped, ", saved ", checkpoint()));
}

}  // namespace lockstep
