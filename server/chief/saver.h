#ifndef LOCKSTEP_SERVER_CHIEF_SAVER_H_
#define LOCKSTEP_SERVER_CHIEF_SAVER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/base/mutex.h"
#include "common/checkpoint/checkpoint_manager.h"
#include "common/io/file_system.h"
#include "server/ps/variable_store.h"

namespace lockstep {

// Writes snapshots as checkpoints <directory>/model.ckpt-<step>, one at a time, in a thread of its own, and
// keeps the newest few. A snapshot that comes while another is written waits; a newer one takes its place.
// A failed save is reported and harms nothing that was saved before. Thread-safe.
class Saver {
 public:
  struct Options {
    FileSystem* fs = nullptr;
    std::string directory;
    int64_t keep = 5;  // 0: all
    // Called from the saver's thread after each save, without locks.
    std::function<void(int64_t step, const std::string& prefix, const absl::Status& status)> on_saved;
  };

  static absl::StatusOr<std::unique_ptr<Saver>> Create(Options options);
  // Finishes the save that is being written; drops one that waits.
  ~Saver();

  // Never blocks on files. A snapshot of the step that is being written already is dropped.
  void Save(VariableStore::Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until nothing waits or is being written; returns the status of the last save (OK when there was none).
  absl::Status WaitUntilIdle() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Saver(Options options, std::unique_ptr<CheckpointManager> manager);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Write(const VariableStore::Snapshot& snapshot, const std::string& prefix);

  const Options options_;
  const std::unique_ptr<CheckpointManager> manager_;  // for the saver's thread alone
  Mutex mutex_;
  CondVar changed_;
  absl::optional<VariableStore::Snapshot> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::optional<int64_t> writing_step_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status last_status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_SAVER_H_
