#include "lockstep/server/chief/chief.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/floating_point_mode.h"
#include "lockstep/common/base/process/process_usage.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/server/chief/run/program_change.h"
#include "lockstep/server/chief/run/run_identity.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {
namespace {

// Records the program that continues a finished run, which may differ from the previous one.
void AdoptProgram(const ChiefOptions& options, RunHistory* history) {
  const int64_t step = history->record().finished_step();
  absl::optional<v1::ModelSpec> model;
  if (options.model) {
    absl::StatusOr<v1::ModelSpec> made = options.model();
    LOG_IF(WARNING, !made.ok()) << "the run continues with the trained variables of before, as the model cannot be "
                                << "made: " << made.status().message();
    if (made.ok()) model = *std::move(made);
  }
  history->Note([&](v1::RunRecord* record) {
    ChangeProgram(step, options.program, record);
    if (model) ChangeTrainedVariables(step, *model, record);
  });
  const v1::RunRecord record = history->record();
  for (const auto& change : record.program_change()) {
    LOG_IF(INFO, change.step() == step) << "from step " << step << " on the run's program " << change.what();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chief>> Chief::Create(Options options) {
  RETURN_IF_ERROR(CheckFloatingPointMode());
  std::unique_ptr<RunDirectory> directory;
  if (!options.logdir.empty()) {
    ASSIGN_OR_RETURN(directory, RunDirectory::Open(options.fs, options.logdir, options.replaces));
    options.fs = directory->files();
  }
  std::unique_ptr<Chief> chief(new Chief(std::move(options), std::move(directory)));
  RETURN_IF_ERROR(chief->Start());
  return chief;
}

Chief::Chief(Options options, std::unique_ptr<RunDirectory> directory)
    : run_(std::move(options), std::move(directory)), sessions_(&run_), ends_(&run_), changes_(&run_) {}

absl::Status Chief::Start() {
  ASSIGN_OR_RETURN(const bool recorded,
                   run_.history.Read(run_.options.machine.draw_run_id(), run_.options.checkpoint_basename));
  if (run_.history.may_change_program()) AdoptProgram(run_.options, &run_.history);
  v1::RunRecord record = run_.history.record();
  bool changes = false;
  if (recorded) {
    const absl::Status same = CheckSameRun(record.config(), run_.options.config);
    // Restarting a program with its original configuration is not a change: the run keeps the settings that the program
    // changed later.
    if (!same.ok() && !CheckSameRun(ConfigAtStart(record), run_.options.config).ok()) {
      if (!run_.options.change_settings) return same;
      RETURN_IF_ERROR(CheckMayChange(record.config(), run_.options.config));
      changes = true;
      // The first worker must redeclare what its gradients depend on.
      ForgetDeclaration(&record);
    }
    RETURN_IF_ERROR(CheckSameArithmetic(run_.options.fs, run_.options.logdir, record));
    RETURN_IF_ERROR(CheckSameProgram(record, run_.options.program));
    if (record.has_other_run() && !run_.options.new_run) {
      return WrongLogdir(record.other_run(), run_.options.logdir, record.run_id());
    }
  }
  // Starts before the restore, which may take a long time.
  StartBeats();
  LOG(INFO) << PolicyText(run_.options.config.training());
  OpenJournal();
  if (run_.options.on_accepted) RETURN_IF_ERROR(run_.options.on_accepted());
  if (recorded) RETURN_IF_ERROR(run_.StartModel(std::make_shared<RunContract>(record), changes));
  PeriodicTask::Options periodic;
  periodic.clock = run_.options.clock;
  periodic.executor = run_.options.machine.executor;
  periodic.name = "housekeeping";
  periodic.period = run_.options.housekeeping_period;
  housekeeping_ = std::make_unique<PeriodicTask>(periodic, [this] { Housekeep(); });
  return absl::OkStatus();
}

void Chief::StartBeats() {
  if (run_.options.beat_period <= absl::ZeroDuration() || run_.options.logdir.empty()) return;
  PeriodicTask::Options periodic;
  periodic.clock = run_.options.clock;
  periodic.executor = run_.options.machine.executor;
  periodic.name = "beats";
  periodic.period = run_.options.beat_period;
  beats_ = std::make_unique<PeriodicTask>(periodic, [this, lost = false]() mutable {
    if (lost) return;
    const absl::Status beat = run_.history.Beat();
    lost = absl::IsFailedPrecondition(beat);
    LOG_IF_EVERY_N(WARNING, !beat.ok() && !lost, 100) << "a standby may take this chief for frozen: " << beat.message();
  });
}

void Chief::OpenJournal() {
  if (run_.options.write_journal && !run_.options.logdir.empty()) {
    const absl::Status opened = run_.journal.Open(JoinPath(run_.options.logdir, RunJournal::kFileName));
    LOG_IF(WARNING, !opened.ok()) << "the run's history is not kept: " << opened.message();
  }
  run_.OnEvent({RunEvent::kStarted, 0, run_.options.machine.host, run_.history.run_id()});
}

absl::Status Chief::AwaitModel() {
  MutexLock lock(&run_.mutex);
  while (run_.training == nullptr && !run_.life.stop_requested()) run_.changed.Wait(&run_.mutex);
  // Fails even if training exists: Wait may have returned before training was created.
  RETURN_IF_ERROR(run_.life.CheckNotStopping());
  return run_.life.failure();
}

v1::RunStatus Chief::GetStatus() const {
  const auto settings = run_.settings.spec();
  const config::v1::RunSpec& config = *settings;
  v1::RunStatus status;
  *status.mutable_build() = run_.options.machine.build;
  status.set_host(run_.options.machine.host);
  status.set_generation(generation());
  status.set_run_id(run_.history.run_id());
  status.set_replicas_to_aggregate(config.training().replicas_to_aggregate());
  status.set_policy(PolicyName(config.training()));
  status.set_examples_per_step(config.input().batch_size() * config.training().replicas_to_aggregate());
  // Protobuf rejects strings that are not UTF-8, and a path may contain any bytes.
  status.set_logdir(ToUtf8(run_.options.logdir, run_.options.logdir.size()));
  const Training* training = nullptr;
  {
    MutexLock lock(&run_.mutex);
    status.set_phase(run_.life.phase());
    status.set_message(std::string(run_.life.failure().message()));
    training = run_.training.get();
  }
  const int64_t total = training != nullptr ? training->sync()->total_steps() : config.training().steps();
  status.set_total_steps(total == RunTarget::kUnbounded ? 0 : total);
  if (training != nullptr) training->FillStatus(&status);
  if (training != nullptr && status.phase() == v1::RunStatus::FINISHED) {
    const std::string recorded = run_.history.target().reason();
    // Without a logdir, nothing is recorded.
    status.set_message(recorded.empty() ? training->sync()->end_reason() : recorded);
  }
  if (status.phase() == v1::RunStatus::WAITING_FOR_MODEL)
    status.set_message("waiting for a worker to declare the model");
  if (status.phase() == v1::RunStatus::TRAINING && status.worker_size() == 0) status.set_message("waiting for workers");
  return status;
}

void Chief::FillWatch(v1::WatchRunReply* reply) const {
  *reply->mutable_status() = GetStatus();
  run_.journal.FillCounters(reply);
  v1::RunCounters& counters = *reply->mutable_counters();
  const Training* const training = run_.FindTraining();
  if (training != nullptr) training->FillWatch(reply);
  counters.set_examples(counters.steps() * reply->status().examples_per_step());
  const ProcessUsage usage = ReadProcessUsage();
  counters.set_cpu_seconds(absl::ToDoubleSeconds(usage.processor_time));
  counters.set_resident_bytes(usage.resident_bytes);
  counters.set_open_files(usage.open_files);
}

void Chief::FillNews(bool times, WatchCursor* cursor, v1::WatchRunReply* reply) const {
  run_.journal.Fill(&cursor->journal, reply);
  const Training* const training = run_.FindTraining();
  if (times && training != nullptr) training->sync()->FillTimeLine(&cursor->times, reply);
}

absl::StatusOr<v1::ReadVariablesReply> Chief::ReadVariables(const v1::ReadVariablesRequest& request) {
  Training* const training = this->training();
  if (training == nullptr) return absl::UnavailableError("the chief does not know the model yet");
  return training->reads()->Read(request);
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
    MutexLock lock(&run_.mutex);
    const absl::Time now = run_.options.clock->Now();
    run_.ExpireSessions(now);
    run_.brought.Expire(now);
    trains = run_.life.phase() == v1::RunStatus::TRAINING;
    says_idle = idle_log_.Take(now, idle && (trains || run_.life.phase() == v1::RunStatus::WAITING_FOR_MODEL));
  }
  if (trains && training != nullptr) {
    SaveIfRequested(training);
    training->SaveIfDue();
  }
  if (!says_idle) return;
  LOG(INFO) << (training == nullptr ? "waiting for a worker to declare the model"
                                    : absl::StrCat("step ", training->sync()->step(), ": waiting for workers"));
}

void Chief::RequestSave() {
  MutexLock lock(&run_.mutex);
  save_requested_ = true;
}

void Chief::SaveIfRequested(Training* training) {
  bool requested = false;
  {
    MutexLock lock(&run_.mutex);
    std::swap(requested, save_requested_);
  }
  if (requested && !training->BeginSave()) RequestSave();
}

}  // namespace lockstep
