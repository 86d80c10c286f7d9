#ifndef LOCKSTEP_SERVER_CHIEF_RUN_STATE_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_STATE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/server/chief/checkpoint/brought_values.h"
#include "lockstep/server/chief/checkpoint/restore.h"
#include "lockstep/server/chief/chief_options.h"
#include "lockstep/server/chief/journal/run_journal.h"
#include "lockstep/server/chief/run/run_contract.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/chief/run/run_history.h"
#include "lockstep/server/chief/run/run_life.h"
#include "lockstep/server/chief/run/run_settings.h"
#include "lockstep/server/chief/session_table.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The state of one run, shared by the parts of a chief: settings and record, phase, sessions and, once the model is
// known, its training. Receives the run's events. The parts (Sessions, RunEnds, RunChanges) lock the mutexes
// themselves. Lock order: change_mutex, mutex. Thread-safe.
struct RunState : public RunEvents {
  // `directory` is null without a logdir.
  RunState(ChiefOptions chief_options, std::unique_ptr<RunDirectory> directory);

  // Creates `training` for a model, from the newest checkpoint, from the values that its first worker brought or from
  // the seed, and writes the record. Brought values are saved before it returns. After an error, another worker may
  // declare a different model.
  absl::Status StartModel(std::shared_ptr<const RunContract> contract, bool changes_settings = false,
                          absl::optional<BroughtValues::Whole> values = absl::nullopt) ABSL_LOCKS_EXCLUDED(mutex);
  // Records the workers' declarations. The record keeps its configuration.
  absl::Status WriteRecord(const RunContract& contract) ABSL_LOCKS_EXCLUDED(mutex);
  // Returns true if the run is new and starts from the values that its first worker brings, if it brings any.
  bool takes_initial_values() const;
  // Calls CheckBroughtValuesFit.
  absl::Status CheckBroughtValuesFit(const v1::ModelSpec& model) const;
  // Null before the model is known; afterwards it never changes.
  Training* FindTraining() const ABSL_LOCKS_EXCLUDED(mutex);
  // Called before a change of settings that workers compute with, because their declarations hold only for the old
  // settings.
  void ForgetDeclarations() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Returns what is known about the run under the settings that apply after `changes` changes.
  std::shared_ptr<const RunContract> ContractFor(int64_t changes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Removes sessions that have no stream and have expired.
  void ExpireSessions(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Logs the event. If the run has ended or the last worker has left, wakes the threads that wait for `changed`.
  void OnEvent(const RunEvent& event) override ABSL_LOCKS_EXCLUDED(mutex);
  void OnCommitted(const CommittedStep& committed) override;

  const ChiefOptions options;
  RunSettings settings;
  RunHistory history;
  RunJournal journal;
  // Lets workers test whether they can map the chief's memory. Null if no memory is shared.
  const std::unique_ptr<SharedMemory> shared_memory;

  // Held while an assignment, a change or an end is recorded and applied, so that the record lists them in order.
  Mutex change_mutex;
  mutable Mutex mutex;
  CondVar changed;
  RunLife life ABSL_GUARDED_BY(mutex);
  SessionTable sessions ABSL_GUARDED_BY(mutex);
  BroughtValues brought ABSL_GUARDED_BY(mutex);
  // If true, the run continues after it finished, and its program may use different functions: the first worker that
  // names the parts of its model, and the first that computes the canary, may replace the run's declarations.
  bool parts_may_change ABSL_GUARDED_BY(mutex) = false;
  bool canary_may_change ABSL_GUARDED_BY(mutex) = false;
  // The time when `training` was created.
  absl::optional<absl::Time> begun ABSL_GUARDED_BY(mutex);
  // Null before the model is known, like `training`.
  std::shared_ptr<const RunContract> contract ABSL_GUARDED_BY(mutex);
  // The newest contract for settings that have since changed, and the number of changes that led to those settings.
  struct EarlierContract {
    std::shared_ptr<const RunContract> contract;
    int64_t changes = -1;
  };
  EarlierContract earlier ABSL_GUARDED_BY(mutex);
  // RunSettings::changes when `training` was created.
  int64_t first_changes ABSL_GUARDED_BY(mutex) = 0;
  std::unique_ptr<Training> training ABSL_GUARDED_BY(mutex);

 private:
  RestoreOptions NewRestoreOptions() const;
  // Creates the training from `*contract`, which it replaces if the workers' declarations in it no longer apply.
  absl::StatusOr<std::unique_ptr<Training>> CreateTraining(std::shared_ptr<const RunContract>* contract,
                                                           bool changes_settings,
                                                           absl::optional<BroughtValues::Whole> values)
      ABSL_LOCKS_EXCLUDED(mutex);
  // Sets the declared fields, the build and the program. Keeps the configuration and the run's history, such as its
  // changes and assignments.
  void FillRecord(const RunContract& declared, v1::RunRecord* record) const;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_STATE_H_
