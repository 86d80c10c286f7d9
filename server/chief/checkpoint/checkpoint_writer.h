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

// Writes snapshots as checkpoints <directory>/model.ckpt-<step>, one at a time, and keeps the newest few. Two threads
// of its own write: one spread over time (SavePace) and with what training leaves of the processors, the other at once,
// when a caller waits. A snapshot that comes while another is written waits and ends its pauses; a newer one takes its
// place, and one that is older than any before is dropped. A failed save is reported and harms nothing that was saved
// before. Thread-safe.
class CheckpointWriter {
 public:
  struct Options {
    FileSystem* fs = nullptr;
    Clock* clock = nullptr;
    Executor* executor = Executor::Threads();
    // Its may_record is also called before each save, by the thread that writes, without locks.
    CheckpointManager::Options checkpoints;
    // The checkpoint that the run starts from (CheckpointManager::Adopt); nullopt: none.
    absl::optional<std::string> restored;
    // Every snapshot that is taken by Save is written, if its disk allows: the caller waits for kRoom before each but
    // the first. Otherwise a newer one takes the place of one that waits.
    bool writes_all = false;
    // Receives kSaved, kSaveFailed and, with writes_all, kRoom from the threads that write, one call at a time.
    RunEvents* events = nullptr;
  };

  // Errors: those of CheckpointManager::Create and Adopt.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(Options options);
  // Writes what waits: blocks for as long as the disk does, LimitWaits or not.
  ~CheckpointWriter();

  // Never blocks on files. A snapshot of a step that is saved, or is being written already, is dropped.
  // Returns whether it is taken.
  bool Save(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Never blocks on files, either, but the snapshot is written without pauses and at training's priority. If its step
  // is being written already, that is begun again unless it is at its end.
  void SaveAtOnce(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // What waits or is being written continues as after SaveAtOnce. Never blocks on files. Returns whether there is any.
  bool Hurry() ABSL_LOCKS_EXCLUDED(mutex_);

  // The variables of the step were set after it was saved, or while: the snapshot is written in place of that. Blocks
  // as WaitUntilIdle.
  absl::Status SaveAgain(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Hurries, and blocks until nothing waits and nothing is being written; returns the status of
  // the last save (OK when there was none). Errors: DeadlineExceeded at the time that was given to LimitWaits.
  absl::Status WaitUntilIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  // For those who wait already, too.
  void LimitWaits(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CheckpointWriter(Options options, std::unique_ptr<CheckpointManager> manager);
  // Writes what waits, `paced` what nobody waits for, else the rest.
  void Loop(bool paced) ABSL_LOCKS_EXCLUDED(mutex_);
  // With `paced` over time, and left to the other thread when it becomes urgent.
  void WriteAndReport(VariableStore::Snapshot snapshot, bool paced) ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancelled, with `paced`, when it has become urgent.
  absl::Status Write(const VariableStore::Snapshot& snapshot, const std::string& prefix, bool paced)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The pauses of a save that begins now.
  BundleWriterOptions::BeforePiece NewPace(const VariableStore::Snapshot& snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Until `turn`, or until a newer snapshot waits. Cancelled when saving has become urgent.
  absl::Status AwaitTurn(absl::Time turn) ABSL_LOCKS_EXCLUDED(mutex_);
  // It is not being written any more and waits again, unless a newer one does.
  void PutBack(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<CheckpointManager> manager_;  // for the one thread that writes at a time
  Mutex mutex_;
  CondVar changed_;
  SaveQueue queue_ ABSL_GUARDED_BY(mutex_);
  // The one that waits in queue_.
  absl::optional<VariableStore::Snapshot> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Status last_status_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<Thread> paced_;
  const std::unique_ptr<Thread> at_once_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_CHECKPOINT_WRITER_H_
