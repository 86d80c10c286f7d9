#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_HISTORY_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_HISTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/chief/run/run_target.h"
#include "lockstep/server/sync/run_events.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// What is known of a run and kept in its logdir: the record, and with it the step at which the run ends. A change
// counts once it is on the disk. Without a logdir it is kept in memory. Thread-safe; writes one change after the other,
// without a lock.
class RunHistory {
 public:
  // `directory` may be null. Then the generation is `now`: nothing can be persisted, but a restarted chief must still
  // not be taken for its predecessor. `events`, which may be null, receives kLogdirLost.
  RunHistory(std::unique_ptr<RunDirectory> directory, absl::Time now, RunEvents* events = nullptr);

  // Returns OK without a logdir, or if it is still this chief's. Else FailedPrecondition, after kLogdirLost. Other
  // errors: those of the file system.
  absl::Status CheckOwned() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of this chief's life.
  int64_t generation() const { return generation_; }

  // What the logdir has becomes the record; false when it has none. A record without a run's id gets that of
  // `drawn_run_id`, on the disk with the next Update. Before all else.
  absl::StatusOr<bool> Read(uint64_t drawn_run_id) ABSL_LOCKS_EXCLUDED(mutex_);
  v1::RunRecord record() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of examples of the training data, if the record has it.
  absl::optional<int64_t> examples() const ABSL_LOCKS_EXCLUDED(mutex_);
  // After Read; then always the same.
  std::string run_id() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if Read found neither a record nor a checkpoint, or there is no logdir.
  bool found_nothing() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes the record. Errors: those of the file system; nothing has changed then, but when the record is in_doubt the
  // next life may find the change.
  absl::Status Update(const std::function<void(v1::RunRecord*)>& change) ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes the record in memory, without waiting for the disk. What is noted is written by Flush, or with the next
  // Update or EndAt.
  void Note(const std::function<void(v1::RunRecord*)>& change) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes what was noted; OK if all is written. Errors: those of Update; the notes stay.
  absl::Status Flush() ABSL_LOCKS_EXCLUDED(mutex_);

  // The run continues from the checkpoint of global step `restored`, with `state`: what the record has of later
  // assignments and changes has not come into any weights, and is dropped, and so is that the run is finished.
  // `changes_settings`: from here on it has other settings than the record. Returns whether what workers had declared
  // was dropped as well, as they compute with other settings. Written by the next Update.
  bool Continue(int64_t restored, const v1::SessionState& state, bool changes_settings) ABSL_LOCKS_EXCLUDED(mutex_);
  // The run continues from the checkpoint of global step `restored`. Written by the next Update.
  void ResolveTarget(const config::v1::TrainingConfig& config, int64_t restored) ABSL_LOCKS_EXCLUDED(mutex_);
  RunTarget target() const ABSL_LOCKS_EXCLUDED(mutex_);
  // RunTarget::EndAt, on the disk. Errors: those of the file system, and nothing has changed then; Unknown when the
  // next life may find this end or not: it is the target of this life, and is written again when it is asked for again.
  absl::Status EndAt(int64_t step, const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that workers had served another run before this one began: no later incarnation continues this one
  // unasked. Written with the first Update if there is no record yet. Errors: those of the file system; the next Update
  // writes it.
  absl::Status NoteOtherRun(const v1::RunRecord::OtherRun& other) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last change has replaced the record, and a loss of power may take it back: the disk has not said that it has
  // it.
  bool in_doubt() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Doubtful { kDropped, kKept };
  // Doubtful: what becomes of a change that is in doubt.
  absl::Status Write(v1::RunRecord record, RunTarget target, Doubtful doubtful) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until no other change is being written. Returns the record.
  v1::RunRecord BeginWriting() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<RunDirectory> directory_;  // null without a logdir
  RunEvents* const events_;
  const int64_t generation_;
  mutable Mutex mutex_;
  CondVar written_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // The record has notes that are not written.
  bool unwritten_ ABSL_GUARDED_BY(mutex_) = false;
  // The notes made since the record that is being written was taken.
  std::vector<std::function<void(v1::RunRecord*)>> notes_ ABSL_GUARDED_BY(mutex_);
  bool known_ ABSL_GUARDED_BY(mutex_) = false;
  bool found_nothing_ ABSL_GUARDED_BY(mutex_) = false;
  bool in_doubt_ ABSL_GUARDED_BY(mutex_) = false;
  v1::RunRecord record_ ABSL_GUARDED_BY(mutex_);
  RunTarget target_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_HISTORY_H_
