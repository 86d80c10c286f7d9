#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_SETTINGS_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_SETTINGS_H_

#include <cstdint>
#include <utility>

#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// The configuration with which a run computes at this moment: settings of it may be changed between two steps.
// Thread-safe; its lock is a leaf.
class RunSettings {
 public:
  explicit RunSettings(config::v1::RunSpec spec) : spec_(std::move(spec)) {}

  // Both at the same moment.
  void Fill(v1::GetRunSpecReply* reply) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    *reply->mutable_spec() = spec_;
    reply->set_changes(changes_);
  }
  config::v1::RunSpec spec() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return spec_;
  }
  // Grows with each change of what workers compute with.
  int64_t changes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return changes_;
  }
  void Set(config::v1::RunSpec spec, int64_t changes) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    spec_ = std::move(spec);
    changes_ = changes;
  }

 private:
  mutable Mutex mutex_;
  config::v1::RunSpec spec_ ABSL_GUARDED_BY(mutex_);
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The configuration with which a program starts the run that is recorded: that of the record without the changes which
// the program made last, between steps.
config::v1::RunSpec ConfigAtStart(const v1::RunRecord& record);

// Changes `config`, which applied from the change on, to what applied before it.
void TakeBack(const v1::RunRecord::Change& change, config::v1::RunSpec* config);

// The run continues from the checkpoint of global step `restored`, to which `changes` of the record apply: drops the
// others, which a program made later and makes again. If the checkpoint does not know their number, these are the
// changes at later steps. Returns whether that dropped what workers had declared.
bool DropLaterChanges(int64_t restored, absl::optional<int64_t> changes, v1::RunRecord* record);

// What a program that starts the run with `given` computes with: the settings that it has changed are the record's.
config::v1::RunSpec WithChanges(const v1::RunRecord& record, config::v1::RunSpec given);

// Adds a program's change of the settings from global step `step` on, with the differences between `after` and the
// record's configuration. Forgets what workers have declared with the old settings if they compute with them.
void AddChange(int64_t step, const config::v1::RunSpec& after, v1::RunRecord* record);

// Takes out what the first worker with these settings declares again.
void ForgetDeclaration(v1::RunRecord* record);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_SETTINGS_H_
