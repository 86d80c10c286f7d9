#include "lockstep/server/chief/chief.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/floating_point_mode.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/server/chief/checkpoint/restore.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

constexpr absl::Duration kIdleLogPeriod = absl::Seconds(5);

absl::Status CheckSameProgram(const v1::RunRecord& record, const std::string& program) {
  if (record.program() == program) return absl::OkStatus();
  if (program.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the logdir holds a run whose weights depend on functions of the program ", record.program(),
                     "; resume it with that program"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the logdir holds a run that was made ",
                   record.program().empty() ? "without functions of a program"
                                            : absl::StrCat("with functions of the program ", record.program()),
                   ", this is the program ", program, "; use another logdir"));
}

// Null when nothing is to be shared, or the system has no memory of that kind.
std::unique_ptr<SharedMemory> NewSharedMemory(const Chief::Options& options) {
  if (!options.share_memory || CompressionOf(options.config.compression()).any()) return nullptr;
  auto memory = SharedMemory::Create(1);
  if (memory.ok()) return *std::move(memory);
  LOG(WARNING) << memory.status().message();
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chief>> Chief::Create(Options options) {
  RETURN_IF_ERROR(CheckFloatingPointMode());
  std::unique_ptr<RunDirectory> directory;
  if (!options.logdir.empty()) {
    ASSIGN_OR_RETURN(directory, RunDirectory::Open(options.fs, options.logdir));
  }
  std::unique_ptr<Chief> chief(new Chief(std::move(options), std::move(directory)));
  RETURN_IF_ERROR(chief->Start());
  return chief;
}

Chief::Chief(Options options, std::unique_ptr<RunDirectory> directory)
    : options_(std::move(options)),
      settings_(options_.config),
      history_(std::move(directory), options_.clock->WallTime(), this),
      shared_memory_(NewSharedMemory(options_)),
      sessions_(generation()) {}

absl::Status Chief::Start() {
  ASSIGN_OR_RETURN(const bool recorded, history_.Read());
  v1::RunRecord record = history_.record();
  bool changes = false;
  if (recorded) {
    const absl::Status same = CheckSameRun(record.config(), options_.config);
    // Nor does a program change anything that is started as it was before: what it has changed since stays.
    if (!same.ok() && !CheckSameRun(ConfigAtStart(record), options_.config).ok()) {
      if (!options_.change_settings) return same;
      RETURN_IF_ERROR(CheckMayChange(record.config(), options_.config));
      changes = true;
      // What the workers' gradients are a function of is the first one's to declare again.
      ForgetDeclaration(&record);
    }
    RETURN_IF_ERROR(CheckSameArithmetic(options_.fs, options_.logdir, record));
    RETURN_IF_ERROR(CheckSameProgram(record, options_.program));
  }
  if (options_.on_accepted) RETURN_IF_ERROR(options_.on_accepted());
  if (recorded) RETURN_IF_ERROR(StartModel(std::make_shared<RunContract>(record), changes));
  PeriodicTask::Options periodic;
  periodic.clock = options_.clock;
  periodic.executor = options_.machine.executor;
  periodic.name = "housekeeping";
  periodic.period = options_.housekeeping_period;
  housekeeping_ = std::make_unique<PeriodicTask>(periodic, [this] { Housekeep(); });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Training>> Chief::CreateTraining(std::shared_ptr<const RunContract>* contract,
                                                                bool changes_settings) {
  RestoreOptions restore;
  restore.fs = options_.fs;
  restore.executor = options_.machine.executor;
  restore.logdir = options_.logdir;
  restore.config = options_.config;
  restore.share_memory = shares_memory();
  restore.initialize = options_.initialize;
  ASSIGN_OR_RETURN(RestoredVariables restored, RestoreOrInitialize(restore, (*contract)->model()));
  history_.ResolveTarget(options_.config.training(), restored.store->step());
  if (history_.Continue(restored.store->step(), restored.session_state.assignments(), changes_settings)) {
    *contract = std::make_shared<const RunContract>(history_.record());
  }
  const v1::RunRecord record = history_.record();
  const config::v1::RunSpec spec = changes_settings ? options_.config : WithChanges(record, options_.config);
  RETURN_IF_ERROR(restored.store->SetOptimizer(spec.optimizer()));
  settings_.Set(spec, record.change_size());
  RETURN_IF_ERROR(WriteRecord(**contract));
  Training::Options training;
  training.chief = &options_;
  training.config = spec;
  training.history = &history_;
  training.events = this;
  return Training::Create(std::move(training), std::move(restored));
}

absl::Status Chief::StartModel(std::shared_ptr<const RunContract> contract, bool changes_settings) {
  {
    MutexLock lock(&mutex_);
    life_.BeginStart();
  }
  absl::StatusOr<std::unique_ptr<Training>> training = CreateTraining(&contract, changes_settings);
  if (!training.ok()) {
    MutexLock lock(&mutex_);
    life_.AbandonStart();
    return training.status();
  }
  const bool finished = (*training)->finished();
  LOG_IF(INFO, finished) << "the run is finished: step " << (*training)->sync()->step() << " of "
                         << (*training)->sync()->total_steps();
  MutexLock lock(&mutex_);
  contract_ = std::move(contract);
  training_ = *std::move(training);
  // A stop may have been requested meanwhile.
  training_->LimitSaves(life_.stop_deadline());
  if (finished) {
    life_.Finish();
  } else {
    life_.Train();
  }
  changed_.SignalAll();
  return absl::OkStatus();
}

Training* Chief::training() const {
  MutexLock lock(&mutex_);
  return training_.get();
}

v1::GetRunSpecReply Chief::GetRunSpec() const {
  v1::GetRunSpecReply reply;
  settings_.Fill(&reply);
  reply.set_generation(generation());
  return reply;
}

absl::Status Chief::WriteRecord(const RunContract& contract) {
  return history_.Update([&](v1::RunRecord* record) {
    v1::RunRecord written;
    *written.mutable_config() = settings_.spec();
    contract.FillRecord(&written);
    *written.mutable_build() = options_.machine.build;
    written.set_program(options_.program);
    *written.mutable_change() = record->change();
    *written.mutable_assignment() = record->assignment();
    // A worker may declare something after the end.
    written.set_finished(record->finished());
    *record = std::move(written);
  });
}

absl::Status Chief::AwaitModel() {
  MutexLock lock(&mutex_);
  while (training_ == nullptr && !life_.stop_requested()) changed_.Wait(&mutex_);
  // Also if there is one by now: Wait may have returned without it.
  RETURN_IF_ERROR(life_.CheckNotStopping());
  return life_.failure();
}

v1::RunStatus Chief::GetStatus() const {
  const config::v1::RunSpec config = settings_.spec();
  v1::RunStatus status;
  *status.mutable_build() = options_.machine.build;
  status.set_host(options_.machine.host);
  status.set_generation(generation());
  status.set_replicas_to_aggregate(config.training().replicas_to_aggregate());
  status.set_examples_per_step(config.input().batch_size() * config.training().replicas_to_aggregate());
  status.set_logdir(options_.logdir);
  const Training* training = nullptr;
  {
    MutexLock lock(&mutex_);
    status.set_phase(life_.phase());
    status.set_message(std::string(life_.failure().message()));
    training = training_.get();
  }
  const int64_t total = training != nullptr ? training->sync()->total_steps() : config.training().steps();
  status.set_total_steps(total == RunTarget::kUnbounded ? 0 : total);
  if (training != nullptr) training->FillStatus(&status);
  if (status.phase() == v1::RunStatus::WAITING_FOR_MODEL)
    status.set_message("waiting for a worker to declare the model");
  if (status.phase() == v1::RunStatus::TRAINING && status.worker_size() == 0) status.set_message("waiting for workers");
  return status;
}

absl::StatusOr<v1::ReadVariablesReply> Chief::ReadVariables(const v1::ReadVariablesRequest& request) {
  Training* const training = this->training();
  if (training == nullptr) return absl::UnavailableError("the chief does not know the model yet");
  return training->reads()->Read(request);
}

void Chief::OnEvent(const RunEvent& event) {
  Log(event);
  const RunEvent::Kind kind = event.kind;
  const bool ends = kind == RunEvent::kFinished || kind == RunEvent::kFailed || kind == RunEvent::kLogdirLost;
  const bool idle = kind == RunEvent::kLeft && event.count == 0;
  if (!ends && !idle) return;
  MutexLock lock(&mutex_);
  if (kind == RunEvent::kFinished) life_.Finish();
  if (kind == RunEvent::kFailed) life_.Fail(event.status);
  if (kind == RunEvent::kLogdirLost) life_.LoseLogdir(event.status);
  changed_.SignalAll();
}

bool Chief::TakeIdleLog(absl::Time now, bool idle) {
  const bool waiting =
      idle && (life_.phase() == v1::RunStatus::TRAINING || life_.phase() == v1::RunStatus::WAITING_FOR_MODEL);
  const bool due = now >= next_idle_log_;
  if (!waiting || due) next_idle_log_ = now + kIdleLogPeriod;
  return waiting && due;
}

void Chief::Housekeep() {
  Training* const training = this->training();
  if (training != nullptr) {
    training->sync()->Tick();
    training->reads()->ForgetIdle();
  }
  const bool idle = training == nullptr || training->sync()->idle();
  bool says_idle = false;
  bool trains = false;
  {
    MutexLock lock(&mutex_);
    const absl::Time now = options_.clock->Now();
    ExpireSessions(now);
    says_idle = TakeIdleLog(now, idle);
    trains = life_.phase() == v1::RunStatus::TRAINING;
  }
  if (trains && training != nullptr) {
    SaveIfRequested(training);
    training->SaveIfDue();
  }
  if (!says_idle) return;
  LOG(INFO) << (training == nullptr ? "waiting for a worker to declare the model"
                                    : absl::StrCat("step ", training->sync()->step(), ": waiting for workers"));
}

absl::Status Chief::Save() {
  Training* const training = this->training();
  return training == nullptr ? absl::OkStatus() : training->Save();
}

void Chief::RequestSave() {
  MutexLock lock(&mutex_);
  save_requested_ = true;
}

void Chief::SaveIfRequested(Training* training) {
  bool requested = false;
  {
    MutexLock lock(&mutex_);
    std::swap(requested, save_requested_);
  }
  if (requested && !training->BeginSave()) RequestSave();
}

}  // namespace lockstep
