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

// Writes snapshots as checkpoints <directory>/model.ckpt-<step>, one at a time, and keeps the newest few: in a thread
// of its own, spread over time (SavePace) and with what training leaves of the processors, or in that of a caller who
// waits. A snapshot that comes while another is written waits and ends its pauses; a newer one takes its place. A
// failed save is reported and harms nothing that was saved before. Thread-safe.
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
  // Writes what waits.
  ~Saver();

  // Never blocks on files. A snapshot of the step that is being written already is dropped.
  void Save(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes what waits, without pauses and at the caller's priority, and so what is being written already, from its
  // beginning unless it is at its end; returns the status of the last save (OK when there was none).
  absl::Status WaitUntilIdle() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Saver(Options options, std::unique_ptr<CheckpointManager> manager);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // The snapshot that waits; it is being written from now on.
  VariableStore::Snapshot TakeWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // With `paced` over time, and left to a caller who comes meanwhile.
  void WriteAndTell(VariableStore::Snapshot snapshot, bool paced) ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancelled, with `paced`, when a caller has come.
  absl::Status Write(const VariableStore::Snapshot& snapshot, const std::string& prefix, bool paced)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The pauses of a save that begins now.
  BundleWriter::BeforePiece NewPace(const VariableStore::Snapshot& snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Until `turn`, or until a newer snapshot waits. Cancelled when a caller waits.
  absl::Status AwaitTurn(absl::Time turn) ABSL_LOCKS_EXCLUDED(mutex_);
  // It is not being written any more and waits again, unless a newer one does.
  void PutBack(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<CheckpointManager> manager_;  // for the thread that writes
  Mutex mutex_;
  CondVar changed_;
  // When the newest snapshot came, and how long after the one before.
  absl::Time last_snapshot_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  absl::optional<VariableStore::Snapshot> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::optional<int64_t> writing_step_ ABSL_GUARDED_BY(mutex_);
  // Callers of WaitUntilIdle: what waits is theirs to write.
  int callers_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status last_status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_SAVER_H_
