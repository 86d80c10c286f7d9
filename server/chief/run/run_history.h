#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_HISTORY_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_HISTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/checkpoint/latest_valid.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/chief/run/run_target.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// The record of a run in its logdir, and the step at which the run ends. A change takes effect once it is on disk.
// Without a logdir, the record is kept only in memory. Thread-safe; changes are written one at a time, without holding
// the lock.
class RunHistory {
 public:
  // If `directory` is null, nothing is persisted, and the generation is `now` in microseconds, so that a restarted
  // chief is not mistaken for its predecessor. `events`, which may be null, receives kLogdirLost.
  RunHistory(std::unique_ptr<RunDirectory> directory, absl::Time now, RunEvents* events = nullptr);

  // Returns OK without a logdir, or if this chief still owns it. Otherwise sends kLogdirLost and returns
  // FailedPrecondition. Other errors: those of the file system.
  absl::Status CheckOwned() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls RunDirectory::Beat, if there is a logdir. Errors: as for CheckOwned.
  absl::Status Beat() const;
  // The generation of this incarnation of the chief.
  int64_t generation() const { return generation_; }

  // Reads the logdir's record. Returns false if there is none. A record without a run id gets the id of `drawn_run_id`,
  // which the next Update writes. Ignores the record of a run whose initial values a worker brought if there is no
  // checkpoint: no worker ever had a session (RunState::StartModel). The run keeps its id, which other files of the
  // logdir have, too. The run's checkpoints have the base name `checkpoint_base`. Must be called before all other
  // methods.
  absl::StatusOr<bool> Read(uint64_t drawn_run_id, absl::string_view checkpoint_base = kRunBase)
      ABSL_LOCKS_EXCLUDED(mutex_);
  v1::RunRecord record() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of recorded changes of settings.
  int64_t changes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Number of examples in the training data; absent if the record does not have it.
  absl::optional<int64_t> examples() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Available after Read. Never changes after that.
  std::string run_id() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The initial values that a worker brought when the run was new; empty if none did.
  v1::RunRecord::InitialValues initial_values() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if Read found neither a record nor a checkpoint, or there is no logdir.
  bool found_nothing() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the latest recorded step at which the run finished, if any.
  absl::optional<int64_t> good_end() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if the run continues from the step at which it last finished, so that its program may change.
  // OnRestored may make this false.
  bool may_change_program() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the chief has restored step `step`. Returns FailedPrecondition if the run finished at a later step,
  // whose checkpoint is damaged, and its program changed there: the steps in between belong to the earlier program.
  absl::Status OnRestored(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes the record. Errors: those of the file system, in which case nothing has changed. If in_doubt() is true,
  // however, the next incarnation may find the change.
  absl::Status Update(const std::function<void(v1::RunRecord*)>& change) ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes the record in memory, without waiting for the disk. Flush, or the next Update or EndAt, writes these notes.
  void Note(const std::function<void(v1::RunRecord*)>& change) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes pending notes. Returns OK if there are none. Errors: as for Update; the notes stay pending.
  absl::Status Flush() ABSL_LOCKS_EXCLUDED(mutex_);

  // Prepares the record of a run that continues from the checkpoint of global step `restored`, which holds `state`.
  // Drops the mark that the run is finished, a finish at a later step, and later assignments and changes, which have
  // not affected any weights.
  //
  // If `changes_settings`, settings that differ from those in the record apply from here on. Returns true if the
  // workers' declarations were dropped, too, because the settings that workers compute with have changed. The next
  // Update writes the result.
  bool Continue(int64_t restored, const v1::SessionState& state, bool changes_settings) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the target of a run that continues from the checkpoint of global step `restored`. The next Update writes it.
  void ResolveTarget(const config::v1::TrainingConfig& config, int64_t restored) ABSL_LOCKS_EXCLUDED(mutex_);
  RunTarget target() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls RunTarget::EndAt and writes the result to disk. Errors: those of the file system, in which case nothing has
  // changed; Unknown if the next incarnation may or may not find this end. After Unknown, this incarnation uses the end
  // as its target, and another call writes it again.
  absl::Status EndAt(int64_t step, const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that workers had served another run before this one began, so that no later incarnation continues this run
  // unless asked to. Written with the first Update if there is no record yet. Errors: those of the file system; the
  // next Update retries the write.
  absl::Status NoteOtherRun(const v1::RunRecord::OtherRun& other) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if the last change has replaced the record but the disk has not confirmed it, so that a power loss may
  // undo the change.
  bool in_doubt() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Sends kLogdirLost if `status` is FailedPrecondition. Returns `status`.
  absl::Status Report(absl::Status status) const;
  enum class Doubtful { kDropped, kKept };
  // `doubtful` determines whether this object keeps a change that the disk has not confirmed.
  absl::Status Write(v1::RunRecord record, RunTarget target, Doubtful doubtful) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until no other change is being written, marks this one as being written, and returns a copy of the record.
  v1::RunRecord BeginWriting() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<RunDirectory> directory_;  // null without a logdir
  RunEvents* const events_;
  const int64_t generation_;
  mutable Mutex mutex_;
  CondVar written_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // True if the record has unwritten notes.
  bool unwritten_ ABSL_GUARDED_BY(mutex_) = false;
  // Notes made since the record that is being written was copied.
  std::vector<std::function<void(v1::RunRecord*)>> notes_ ABSL_GUARDED_BY(mutex_);
  bool known_ ABSL_GUARDED_BY(mutex_) = false;
  bool found_nothing_ ABSL_GUARDED_BY(mutex_) = false;
  bool may_change_program_ ABSL_GUARDED_BY(mutex_) = false;
  bool in_doubt_ ABSL_GUARDED_BY(mutex_) = false;
  v1::RunRecord record_ ABSL_GUARDED_BY(mutex_);
  RunTarget target_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_HISTORY_H_
