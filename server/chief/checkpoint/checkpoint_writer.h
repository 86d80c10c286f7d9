#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_CHECKPOINT_WRITER_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_CHECKPOINT_WRITER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/chief/checkpoint/checkpoint_manager.h"
#include "lockstep/server/chief/checkpoint/save_queue.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/run_events.h"

namespace lockstep {

// Writes snapshots as checkpoints <directory>/<base_name>-<step>, one at a time, and keeps the newest few. Owns two
// writer threads: one spreads a save over time (SavePace) and uses only processor time that training leaves idle; the
// other writes immediately when a caller waits. A snapshot that arrives during a save waits, and the save then
// continues without pauses. A newer snapshot replaces a waiting one, and a snapshot older than any before it is
// dropped. A failed save is reported and does not affect earlier checkpoints. Thread-safe.
class CheckpointWriter {
 public:
  struct Options {
    FileSystem* fs = nullptr;
    Clock* clock = nullptr;
    Executor* executor = Executor::Threads();
    // `checkpoints.may_record` is also called before each save, by the writing thread, without locks.
    CheckpointManager::Options checkpoints;
    // The checkpoint that the run starts from (CheckpointManager::Adopt), if any.
    absl::optional<std::string> restored;
    // If true, every snapshot passed to Save is written as long as the disk works, and the caller must wait for kRoom
    // before each snapshot except the first. If false, a newer snapshot replaces a waiting one.
    bool writes_all = false;
    // Receives kSaved, kSaveFailed and, with writes_all, kRoom from the writer threads, one call at a time.
    RunEvents* events = nullptr;
  };

  // Errors: as for CheckpointManager::Create and Adopt.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(Options options);
  // Writes pending snapshots first. Blocks as long as the disk does, regardless of LimitWaits.
  ~CheckpointWriter();

  // Queues a snapshot. Never blocks on files. Returns false and drops the snapshot if its step is already saved or
  // being written, or a newer one is known.
  bool Save(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues a snapshot to be written without pauses and at training's priority. Never blocks on files. If its step is
  // already being written, writing restarts unless it is about to finish.
  void SaveAtOnce(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes pending and current writes urgent, as if they came from SaveAtOnce. Never blocks on files. Returns false if
  // there are none.
  bool Hurry() ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces the checkpoint of a step whose variables were set during or after its save. Blocks like WaitUntilIdle.
  absl::Status SaveAgain(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls Hurry, then blocks until no snapshot is pending or being written. Returns the status of the last save, or OK
  // if there was none. Errors: DeadlineExceeded at the deadline of LimitWaits.
  absl::Status WaitUntilIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the deadline of all current and future waits.
  void LimitWaits(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CheckpointWriter(Options options, std::unique_ptr<CheckpointManager> manager);
  // The body of a writer thread. The `paced` thread writes snapshots that no caller waits for; the other thread writes
  // the rest.
  void Loop(bool paced) ABSL_LOCKS_EXCLUDED(mutex_);
  // With `paced`, spreads the write over time, and hands the snapshot back if it becomes urgent.
  void WriteAndReport(VariableStore::Snapshot snapshot, bool paced) ABSL_LOCKS_EXCLUDED(mutex_);
  // With `paced`, returns Cancelled if the save has become urgent.
  absl::Status Write(const VariableStore::Snapshot& snapshot, const std::string& prefix, bool paced)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the pacing of a save that begins now.
  BundleWriterOptions::BeforePiece NewPace(const VariableStore::Snapshot& snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until `turn`, until a newer snapshot waits, or until the save becomes urgent. Returns Cancelled if the save
  // has become urgent, except with writes_all.
  absl::Status AwaitTurn(absl::Time turn) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns an interrupted snapshot to the queue, unless a newer one waits there.
  void PutBack(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<CheckpointManager> manager_;  // used by the one thread that is writing
  Mutex mutex_;
  CondVar changed_;
  SaveQueue queue_ ABSL_GUARDED_BY(mutex_);
  // The snapshot of queue_.waiting().
  absl::optional<VariableStore::Snapshot> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Status last_status_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<Thread> paced_;
  const std::unique_ptr<Thread> at_once_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_CHECKPOINT_WRITER_H_
