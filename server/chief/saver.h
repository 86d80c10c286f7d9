#ifndef LOCKSTEP_SERVER_CHIEF_SAVER_H_
#define LOCKSTEP_SERVER_CHIEF_SAVER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/checkpoint/bundle_writer.h"
#include "common/checkpoint/checkpoint_manager.h"
#include "common/io/file_system.h"
#include "server/ps/variable_store.h"

namespace lockstep {

// Writes snapshots as checkpoints <directory>/model.ckpt-<step>, one at a time, and keeps the newest few. Two threads
// of its own write: one spread over time (SavePace) and with what training leaves of the processors, the other at once,
// when somebody waits. A snapshot that comes while another is written waits and ends its pauses; a newer one takes its
// place, and one that is older than any before is dropped. A failed save is reported and harms nothing that was saved
// before. Thread-safe.
class Saver {
 public:
  struct Options {
    FileSystem* fs = nullptr;
    Clock* clock = nullptr;
    std::string directory;
    int64_t keep = 5;  // 0: all
    // Asked before each save, and once more before the checkpoint is listed and old ones go; an error fails the save.
    // Called by the thread that writes, without locks. Null: nobody is asked.
    std::function<absl::Status()> may_save;
    // Called after each save, without locks, one call at a time.
    std::function<void(int64_t step, const std::string& prefix, const absl::Status& status)> on_saved;
  };

  static absl::StatusOr<std::unique_ptr<Saver>> Create(Options options);
  // Writes what waits: blocks for as long as the disk does, LimitWaits or not.
  ~Saver();

  // Never blocks on files. A snapshot of a step that is saved, or is being written already, is dropped.
  void Save(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Never blocks on files, either, but the snapshot is written without pauses and at training's priority. If its step
  // is being written already, that is begun again unless it is at its end.
  void SaveAtOnce(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until nothing waits and nothing is being written, which goes on as after SaveAtOnce; returns the status of
  // the last save (OK when there was none). Errors: DeadlineExceeded at the time that was given to LimitWaits.
  absl::Status WaitUntilIdle() ABSL_LOCKS_EXCLUDED(mutex_);
  // For those who wait already, too.
  void LimitWaits(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Saver(Options options, std::unique_ptr<CheckpointManager> manager);
  // Writes what waits, `paced` what nobody waits for, else the rest.
  void Loop(bool paced) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the snapshot the one that waits. False when it is older than another.
  bool Accept(VariableStore::Snapshot snapshot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool busy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_ || writing_step_; }
  // The snapshot that waits; it is being written from now on.
  VariableStore::Snapshot TakeWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A snapshot of the step waits: it is tried again.
  bool IsWaiting(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // With `paced` over time, and left to the other thread when it becomes urgent.
  void WriteAndTell(VariableStore::Snapshot snapshot, bool paced) ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancelled, with `paced`, when it has become urgent.
  absl::Status Write(const VariableStore::Snapshot& snapshot, const std::string& prefix, bool paced)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The pauses of a save that begins now.
  BundleWriter::BeforePiece NewPace(const VariableStore::Snapshot& snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Until `turn`, or until a newer snapshot waits. Cancelled when saving has become urgent.
  absl::Status AwaitTurn(absl::Time turn) ABSL_LOCKS_EXCLUDED(mutex_);
  // It is not being written any more and waits again, unless a newer one does.
  void PutBack(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<CheckpointManager> manager_;  // for the one thread that writes at a time
  Mutex mutex_;
  CondVar changed_;
  // When the newest snapshot came, and how long after the one before.
  absl::Time last_snapshot_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  absl::optional<VariableStore::Snapshot> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::optional<int64_t> writing_step_ ABSL_GUARDED_BY(mutex_);
  // Of all snapshots that came, and of those that were saved.
  int64_t newest_step_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t saved_step_ ABSL_GUARDED_BY(mutex_) = -1;
  // Somebody waits, until nothing is left to write.
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Status last_status_ ABSL_GUARDED_BY(mutex_);
  std::thread paced_;
  std::thread at_once_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_SAVER_H_
