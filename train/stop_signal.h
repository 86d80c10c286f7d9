#ifndef LOCKSTEP_TRAIN_STOP_SIGNAL_H_
#define LOCKSTEP_TRAIN_STOP_SIGNAL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep::train {

// The process is to stop, as a signal said: whoever has something to end is called. Thread-safe.
class StopSignal {
 public:
  // Calls all listeners, once, in the caller's thread.
  void Request() ABSL_LOCKS_EXCLUDED(mutex_);
  bool requested() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Who runs sessions in the process says how long a stop may take; the longest counts.
  void Allow(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);
  // How long that is; `otherwise` when nobody has said so.
  absl::Duration limit(absl::Duration otherwise) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether the process may be ended at any moment and has lost nothing, as while its chief reads a checkpoint.
  void set_loses_nothing(bool loses_nothing) { loses_nothing_ = loses_nothing; }
  bool loses_nothing() const { return loses_nothing_; }

  // The id of no listener.
  static constexpr int64_t kNone = 0;
  // `listener` is called at once if a stop was requested before. After Remove it is not being called any more; kNone
  // may be removed at any time.
  int64_t Add(std::function<void()> listener) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(int64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::atomic<bool> loses_nothing_{false};
  mutable Mutex mutex_;
  CondVar called_;
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  absl::optional<absl::Duration> limit_ ABSL_GUARDED_BY(mutex_);
  // Being called without the lock.
  int64_t calling_ ABSL_GUARDED_BY(mutex_) = kNone;
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = kNone;
  std::map<int64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_STOP_SIGNAL_H_
