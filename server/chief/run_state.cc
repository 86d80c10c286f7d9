#include "lockstep/server/chief/run_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/server/chief/run/program_change.h"

namespace lockstep {
namespace {

// Returns null if no memory is shared or the system does not support shared memory.
std::unique_ptr<SharedMemory> NewSharedMemory(const ChiefOptions& options) {
  if (!options.share_memory || CompressionOf(options.config.compression()).any()) return nullptr;
  auto memory = SharedMemory::Create(1);
  if (memory.ok()) return *std::move(memory);
  LOG(WARNING) << memory.status().message();
  return nullptr;
}

RunJournal::Options JournalOptions(const ChiefOptions& options, int64_t generation) {
  RunJournal::Options journal;
  journal.clock = options.clock;
  journal.executor = options.machine.executor;
  journal.fs = options.fs;
  journal.generation = generation;
  return journal;
}

}  // namespace

RunState::RunState(ChiefOptions chief_options, std::unique_ptr<RunDirectory> directory)
    : options(std::move(chief_options)),
      settings(options.config),
      history(std::move(directory), options.clock->WallTime(), this),
      journal(JournalOptions(options, history.generation())),
      shared_memory(NewSharedMemory(options)),
      sessions(history.generation()) {}

RestoreOptions RunState::NewRestoreOptions() const {
  RestoreOptions restore;
  restore.fs = options.fs;
  restore.executor = options.machine.executor;
  restore.logdir = options.logdir;
  restore.checkpoint_basename = options.checkpoint_basename;
  restore.config = options.config;
  restore.share_memory = shared_memory != nullptr;
  restore.initialize = options.initialize;
  restore.may_lack_state_at = history.good_end();
  return restore;
}

bool RunState::takes_initial_values() const {
  return history.found_nothing() && options.config.checkpoint().warm_start().empty() && options.initialize == nullptr;
}

absl::Status RunState::CheckBroughtValuesFit(const v1::ModelSpec& model) const {
  return lockstep::CheckBroughtValuesFit(NewRestoreOptions(), model);
}

absl::StatusOr<std::unique_ptr<Training>> RunState::CreateTraining(std::shared_ptr<const RunContract>* declared,
                                                                   bool changes_settings,
                                                                   absl::optional<BroughtValues::Whole> values) {
  RestoreOptions restore = NewRestoreOptions();
  if (values) restore.initialize = [&values](const v1::ModelSpec&) { return std::move(values->values); };
  ASSIGN_OR_RETURN(RestoredVariables restored, RestoreOrInitialize(restore, (*declared)->model()));
  // An attempt of another worker may have failed after its values were in a checkpoint.
  if (restored.checkpoint) values.reset();
  for (const auto& [checkpoint, why] : restored.damaged) OnEvent({RunEvent::kDamaged, 0, "", checkpoint, why});
  RETURN_IF_ERROR(history.OnRestored(restored.store->step()));
  journal.OnRestored(restored.store->step(), restored.checkpoint.value_or(""));
  history.ResolveTarget(options.config.training(), restored.store->step());
  if (history.Continue(restored.store->step(), restored.session_state, changes_settings)) {
    *declared = std::make_shared<const RunContract>(history.record());
  }
  const v1::RunRecord record = history.record();
  const bool initializes = options.initialize != nullptr;
  if (record.has_model() && !restored.checkpoint) RETURN_IF_ERROR(CheckSameInitFunction(record, initializes));
  const config::v1::RunSpec spec = changes_settings ? options.config : WithChanges(record, options.config);
  RETURN_IF_ERROR(restored.store->SetOptimizer(spec.optimizer()));
  settings.Set(std::make_shared<const config::v1::RunSpec>(spec), NumChanges(record));
  RETURN_IF_ERROR(history.Update([&](v1::RunRecord* record) {
    *record->mutable_config() = spec;
    if (!record->has_model()) record->set_initialized_by_program(initializes);
    if (!restored.checkpoint) record->clear_initial_values();
    if (values) {
      record->mutable_initial_values()->set_digest(values->digest);
      record->mutable_initial_values()->set_brought_by(values->worker);
    }
    FillRecord(**declared, record);
  }));
  LOG_IF(INFO, values.has_value()) << "the run starts from the initial values " << values->digest << ", which "
                                   << values->worker << " brought";
  Training::Options parts;
  parts.chief = &options;
  parts.config = spec;
  parts.history = &history;
  parts.events = this;
  parts.awaits_first_save = values.has_value();
  return Training::Create(std::move(parts), std::move(restored));
}

absl::Status RunState::StartModel(std::shared_ptr<const RunContract> declared, bool changes_settings,
                                  absl::optional<BroughtValues::Whole> values) {
  {
    MutexLock lock(&mutex);
    life.BeginStart();
  }
  absl::StatusOr<std::unique_ptr<Training>> created = CreateTraining(&declared, changes_settings, std::move(values));
  if (!created.ok()) {
    MutexLock lock(&mutex);
    life.AbandonStart();
    return created.status();
  }
  const bool finished = (*created)->finished();
  LOG_IF(INFO, finished) << "the run is finished: step " << (*created)->sync()->step() << " of "
                         << (*created)->sync()->total_steps();
  MutexLock lock(&mutex);
  contract = std::move(declared);
  training = *std::move(created);
  begun = options.clock->Now();
  first_changes = settings.changes();
  parts_may_change = canary_may_change = !finished && options.followed && history.may_change_program();
  // A stop may have been requested in the meantime.
  training->LimitSaves(life.stop_deadline());
  if (finished) {
    life.Finish();
  } else {
    life.Train();
  }
  changed.SignalAll();
  return absl::OkStatus();
}

Training* RunState::FindTraining() const {
  MutexLock lock(&mutex);
  return training.get();
}

void RunState::FillRecord(const RunContract& declared, v1::RunRecord* record) const {
  v1::RunRecord filled;
  declared.FillRecord(&filled);
  filled.mutable_config()->Swap(record->mutable_config());
  *filled.mutable_build() = options.machine.build;
  filled.set_program(options.program);
  filled.mutable_change()->Swap(record->mutable_change());
  filled.mutable_assignment()->Swap(record->mutable_assignment());
  filled.set_earlier_assignments(record->earlier_assignments());
  // Kept because a worker may declare something after the run has finished.
  filled.set_finished(record->finished());
  if (record->has_finished_step()) filled.set_finished_step(record->finished_step());
  filled.mutable_program_change()->Swap(record->mutable_program_change());
  filled.set_initialized_by_program(record->initialized_by_program());
  filled.set_run_id(record->run_id());
  if (record->has_initial_values()) filled.mutable_initial_values()->Swap(record->mutable_initial_values());
  if (record->has_other_run() && !options.new_run) filled.mutable_other_run()->Swap(record->mutable_other_run());
  *record = std::move(filled);
}

absl::Status RunState::WriteRecord(const RunContract& declared) {
  return history.Update([&](v1::RunRecord* record) { FillRecord(declared, record); });
}

void RunState::ForgetDeclarations() {
  // An earlier change may have left nothing to forget.
  if (!contract->has_declarations()) return;
  // While declarations may still be replaced, the contract holds those of the program that finished the run, which no
  // longer apply.
  if (!parts_may_change && !canary_may_change) earlier = {contract, settings.changes()};
  contract = std::make_shared<const RunContract>(*contract, RunContract::Forgets::kPartsAndCanary);
}

std::shared_ptr<const RunContract> RunState::ContractFor(int64_t changes) const {
  if (changes == settings.changes()) return contract;
  if (changes == earlier.changes) return earlier.contract;
  if (!contract->has_declarations()) return contract;
  return std::make_shared<const RunContract>(*contract, RunContract::Forgets::kPartsAndCanary);
}

void RunState::ExpireSessions(absl::Time now) {
  for (const uint64_t id : sessions.Idle(now)) {
    if (!training->sync()->connected(id)) sessions.Remove(id);
  }
}

void RunState::OnCommitted(const CommittedStep& committed) {
  journal.OnCommitted(committed.commit.step(), committed.commit.mean_loss(), committed.time);
}

void RunState::OnEvent(const RunEvent& event) {
  Log(event);
  journal.OnEvent(event);
  const RunEvent::Kind kind = event.kind;
  if (kind == RunEvent::kSaveFailed && event.count == 0 && options.on_save_failed) {
    options.on_save_failed(absl::Status(
        event.status.code(), absl::StrCat("the checkpoint of step ", event.step, ": ", event.status.message())));
  }
  const bool ends = kind == RunEvent::kFinished || kind == RunEvent::kFailed || kind == RunEvent::kLogdirLost;
  const bool idle = kind == RunEvent::kLeft && event.count == 0;
  if (!ends && !idle) return;
  MutexLock lock(&mutex);
  if (kind == RunEvent::kFinished) life.Finish();
  if (kind == RunEvent::kFailed) life.Fail(event.status);
  if (kind == RunEvent::kLogdirLost) life.Abandon(event.status);
  changed.SignalAll();
}

}  // namespace lockstep
