#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_SETTINGS_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_SETTINGS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "lockstep/common/base/mutex.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// The configuration that a run currently uses. Some settings may change between two steps. Thread-safe; acquires no
// other lock while it holds its own.
class RunSettings {
 public:
  explicit RunSettings(config::v1::RunSpec spec)
      : spec_(std::make_shared<const config::v1::RunSpec>(std::move(spec))) {}

  // Fills in the configuration and the matching number of changes.
  void Fill(v1::GetRunSpecReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    *reply->mutable_spec() = *spec_;
    reply->set_changes(changes_);
  }
  // Returns the same object until the next Set.
  std::shared_ptr<const config::v1::RunSpec> spec() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return spec_;
  }
  // Increases with each change of settings that workers compute with.
  int64_t changes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return changes_;
  }
  void Set(std::shared_ptr<const config::v1::RunSpec> spec, int64_t changes) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    spec_ = std::move(spec);
    changes_ = changes;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const config::v1::RunSpec> spec_ ABSL_GUARDED_BY(mutex_);
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns the configuration with which a program starts the recorded run: the record's configuration, with the
// program's latest changes between steps undone.
config::v1::RunSpec ConfigAtStart(const v1::RunRecord& record);

// Undoes `change` in `config`.
void TakeBack(const v1::RunRecord::Change& change, config::v1::RunSpec* config);

// Returns the number of recorded changes.
int64_t NumChanges(const v1::RunRecord& record);

// Returns the settings of `spec` that a program may change, as stored in a checkpoint.
v1::SessionState::Settings SettingsOf(const config::v1::RunSpec& spec);

// Updates the record of a run that continues from the checkpoint of global step `restored` with `state`. Keeps the
// changes that the checkpoint includes and drops the others, which the program made later and will make again. If the
// checkpoint does not store the number of changes, drops those at later steps. Returns true if the workers'
// declarations were dropped, too.
bool DropLaterChanges(int64_t restored, const v1::SessionState& state, v1::RunRecord* record);

// Returns `given`, the configuration with which a program starts the run, with the settings that the program has since
// changed taken from the record.
config::v1::RunSpec WithChanges(const v1::RunRecord& record, config::v1::RunSpec given);

// The difference between the settings of two configurations.
struct SettingsDifference {
  // The settings of the first configuration that differ in the second.
  v1::RunRecord::Change::Settings replaced;
  // True if workers compute something different with the second configuration.
  bool for_workers = false;

  bool empty() const {
    return !replaced.has_learning_rate() && !replaced.has_optimizer() && !replaced.has_batch_size();
  }
};
SettingsDifference DifferenceOf(const config::v1::RunSpec& before, const config::v1::RunSpec& after);

// Records that a program changes the settings to those of `after` from global step `step` on. `difference` is the
// difference between the record's configuration and `after`. Forgets the workers' declarations if they depend on the
// old settings. If there are many changes, merges the oldest ones, so that the cost of a change does not grow with
// their number.
void AddChange(int64_t step, const SettingsDifference& difference, const config::v1::RunSpec& after,
               v1::RunRecord* record);

// Adds an assignment. If there are many, drops the oldest ones.
void AddAssignment(const v1::RunRecord::Assignment& assignment, v1::RunRecord* record);

// Keeps only the run's first `count` assignments.
void KeepAssignments(int64_t count, v1::RunRecord* record);

// Removes the declarations that the first worker with the new settings must make again.
void ForgetDeclaration(v1::RunRecord* record);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_SETTINGS_H_
